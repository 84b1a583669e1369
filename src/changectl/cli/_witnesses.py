"""Asks hosts which heads of the journal were left with them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from changectl.core.audit.witness import Head, Witnesses, read_heads
from changectl.core.errors import ChangectlError
from changectl.core.ports import Doors, HostAddress

AT_ONCE = 8  # hosts
ANSWER_WITHIN = 30.0  # seconds


def ask_hosts(hosts: Sequence[HostAddress], doors: Doors, newest: int) -> Witnesses:
    """What each host witnesses; one that cannot be asked is named with the reason, since silence proves nothing.

    Args:
        hosts: whom to ask, all at the same time.
        doors: the way to them.
        newest: the journal's newest event now: what is recorded from here on they need not know.
    """

    def ask(host: HostAddress) -> tuple[Head, ...] | str:
        try:
            with closing(doors.open(host)) as door:
                return read_heads(host.name, door.call("witness", {}, timeout=ANSWER_WITHIN).get("heads"))
        except ChangectlError as error:
            return " ".join(str(error).split())

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = dict(zip((host.name for host in hosts), pool.map(ask, hosts), strict=True))
    heads = {name: answer for name, answer in answers.items() if not isinstance(answer, str)}
    return Witnesses(
        heads=heads,
        silent={name: answer for name, answer in answers.items() if isinstance(answer, str)},
        asked_at=dict.fromkeys(heads, newest),
    )
