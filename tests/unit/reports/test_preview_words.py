"""A pre-check that refuses is told with what to do about it, and the two do not run into each other."""

from __future__ import annotations

from tests.unit.reports.block_text import lines

from changectl.core.precheck import Check, Seen, ThreeValues
from changectl.reports.preview import instance_blocks


def test_what_is_wrong_and_what_to_do_are_two_lines() -> None:
    three = ThreeValues("x", Seen("1"), Seen("1"), Seen("1"))
    failed = Check("disk_space", "required").failed("3 GB are missing", "remove old models")
    bare = Check("healthy_now", "required").unknown("it does not answer")
    told = lines(instance_blocks("gpu1", "/etc/x", "", three, [failed, bare], nothing_to_do=False))

    at = told.index("disk_space: 3 GB are missing")
    assert told[at : at + 3] == [
        "disk_space: 3 GB are missing",
        "- what to do: remove old models",
        "healthy_now: it does not answer",
    ]
