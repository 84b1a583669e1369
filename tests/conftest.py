"""Two streams of tests (`make test`): those on the lab's hosts mostly wait, so all others run beside them."""

from __future__ import annotations

import os

import pytest

LAB, HERE = "lab", "here"
PROCESSORS = frozenset(os.sched_getaffinity(0))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two groups, each in the order of collection: no two tests share the lab, and no two this machine."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(LAB if _on_lab(item) else HERE))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside the lab, keep to one processor: what is measured on the hosts must not follow from what runs here."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.sched_setaffinity(0, PROCESSORS if _on_lab(item) else {min(PROCESSORS)})


def _on_lab(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("lab", "vllm"))
