"""Two streams of tests (`make test`): those on the lab's hosts mostly wait, so all others run beside them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

LAB, HERE = "lab", "here"
PROCESSORS = frozenset(os.sched_getaffinity(0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Two groups, each in the order of collection: no two tests share the lab, and no two this machine.

    pytest-xdist's own groups (`--dist loadgroup`) fall apart without a word under pytest 9.2, which no longer shows
    the changed name of a test, so the group follows from where a test lies.
    """
    from xdist.scheduler import LoadScopeScheduling

    class TwoStreams(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return stream(nodeid)

    return TwoStreams(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside the lab, keep to one processor: what is measured on the hosts must not follow from what runs here."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.sched_setaffinity(0, PROCESSORS if stream(item.nodeid) == LAB else {min(PROCESSORS)})


def stream(nodeid: str) -> str:
    """The stream of a test: "lab" for all in a folder or file of that name, "here" for all others."""
    path = nodeid.partition("::")[0]
    return LAB if "/lab/" in path or "/test_lab_" in path else HERE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that is marked for the lab and lies elsewhere would run beside another on the same hosts."""
    for item in items:
        if item.get_closest_marker("lab") and stream(item.nodeid) != LAB:
            raise pytest.UsageError(f"{item.nodeid} needs the lab; put it into a folder or a file of that name")
