"""What hosts are made to do in stories: tempers that more than one of them needs."""

from __future__ import annotations

from collections.abc import Callable

from tests.workflow.fake_host import FakeHost


def is_changed(host: FakeHost) -> bool:
    """Whether the host runs the new configuration of a step to eight slots."""
    return host.process is not None and host.process.argv[-1] == "8"


def while_measured(host: FakeHost, letter: str, change: Callable[[FakeHost], None]) -> None:
    """Let something happen while a phase is measured: A on the saved configuration, B on the new one."""

    def happen(host: FakeHost, call: str) -> None:
        if call == "measure" and is_changed(host) == (letter == "B"):
            change(host)

    host.on_call = happen


def answers_too_little_after_the_change(host: FakeHost) -> None:
    """Give too few answers to judge by, from the new configuration alone."""

    def few(host: FakeHost) -> None:
        host.requests = 5

    while_measured(host, "B", few)
