"""Room for the requests under way: each takes a file descriptor, and none may wait for another one's."""

from __future__ import annotations

import resource
from typing import List, Mapping

from changectl.adapters.loadgen.exchange import AFTER_END_MARKER
from changectl.adapters.loadgen.job import Job, JobError
from changectl.adapters.loadgen.schedule import most_within

OTHERS = 32  # descriptors of the program itself, with some to spare


def make_room(job: Job, schedules: Mapping[str, List[int]]) -> None:
    """Raise this process's own limit so far that every request can be under way for as long as it may.

    Args:
        job: what will be sent.
        schedules: when the requests of each open level are due.

    Raises:
        JobError: the host allows fewer; nothing was sent. A level that held requests back would be a closed one.
    """
    longest = job.deadline + AFTER_END_MARKER
    most = 0
    for level in job.levels:
        most = max(most, level.streams or most_within(schedules[level.name], longest))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = most + OTHERS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):
        raise JobError(
            "{} requests may be under way at once (each for up to {:g} s), which takes {} open files, and this host "
            "allows {}: raise that limit (ulimit -Hn) for the user who sends, or lower the rate".format(
                most, job.deadline, needed, hard
            )
        ) from None
