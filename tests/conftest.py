"""Streams of tests for three workers (`make test`): those on lab hosts mostly wait, so all others run beside them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

LAB, FAULTS, WAITING, ENGINES, HERE = "lab", "faults", "waiting", "engines", "here"
# Minutes of looking on, or of waiting for a lease to run out: nothing small is measured.
WAIT = (
    "/lab/test_incident.py",
    "/lab/test_watch.py",
    "/lab/test_deadman_host.py",
    "/lab/test_traffic_nginx.py",
    "/lab/test_caller.py",
)
# A start takes half a minute, and the limits on what is measured are far away from any of it.
SLOW_ENGINES = ("/lab/test_vllm.py", "/lab/test_lab_vllm.py", "/lab/test_mlserver.py")
SAMPLE = "/lab/test_fault_sample.py"
# These are measured, and small effects count: the most so in the first ones.
TRIALS = (
    "/lab/test_trial.py",
    "/lab/test_extend.py",
    "/lab/test_selftest.py",
    "/lab/test_calibrate.py",
    "/lab/test_design_example.py",
)
PROCESSORS = frozenset(os.sched_getaffinity(0))
if number := int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")):
    # Each worker has a lab of its own. The lab reads its number when it is imported, so it is set before that.
    os.environ["CHANGECTL_LAB"] = str((int(os.environ.get("CHANGECTL_LAB") or 1) + number - 1) % 9 + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """A group for each stream, in the order of collection: no two tests share a lab, and no two this machine.

    The longest list goes first: HERE, LAB and WAITING run side by side, and who is through first takes the rest.

    pytest-xdist's own groups (`--dist loadgroup`) fall apart without a word under pytest 9.2, which no longer shows
    the changed name of a test, so the group follows from where a test lies.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Streams(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return stream(nodeid)

    return Streams(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside the lab, keep to one processor: what is measured on the hosts must not follow from what runs here."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.sched_setaffinity(0, {min(PROCESSORS)} if stream(item.nodeid) == HERE else PROCESSORS)


def stream(nodeid: str) -> str:
    """The stream of a test: by the file it lies in."""
    path = nodeid.partition("::")[0]
    if "/lab/" not in path:
        return HERE
    streams = {SAMPLE: FAULTS, WAIT: WAITING, SLOW_ENGINES: ENGINES}
    return next((name for files, name in streams.items() if path.endswith(files)), LAB)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Trials come first, in their order: before FAULTS and ENGINES can run beside them.

    A test that is marked for the lab and lies elsewhere would run beside another on the same hosts.
    """
    for item in items:
        if item.get_closest_marker("lab") and stream(item.nodeid) == HERE:
            raise pytest.UsageError(f"{item.nodeid} needs the lab; put it into tests/lab")
    items.sort(key=lambda item: _turn(item.nodeid.partition("::")[0]))


def _turn(path: str) -> int:
    return next((turn for turn, name in enumerate(TRIALS) if path.endswith(name)), len(TRIALS))
