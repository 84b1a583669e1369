"""On a real host: the engine's queue and its busiest thread are seen while the load runs, and `show` tells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import ANY_FIGURES, Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

STREAMS = 6
IMPOSSIBLE = "{e2e_user: <= 1ms}"


def figures(desk: Desk, run: str) -> dict[str, dict[str, Any]]:
    (found,) = desk.show(run)["steps"][0]["where_the_time_went"]
    return {figure["name"]: figure for figure in found["figures"]}


def seen(desk: Desk, slots: tuple[int, int], accept: str, code: int) -> tuple[str, dict[str, dict[str, Any]]]:
    """Change the number of slots: the run, and its figures by name."""
    change = f"{{parameter: {{name: parallel, from: {slots[0]}, to: {slots[1]}}}}}"
    # Enough requests for some seconds, however fast the machine is: the engine is looked at once a second.
    plan = desk.plan(change, requests=500, more=f"    accept: {accept}\n")
    run = desk.measured(plan, code).document["run"]["run"]
    found = figures(desk, run)
    for side, number in zip(("before", "after"), slots, strict=True):
        # At a look one request may be between its answer and the next one.
        assert STREAMS - number - 1 <= found["waiting"][side]["most"] <= STREAMS - number
        thread = found["busiest_thread"][side]
        assert 0 < thread["mean"] <= thread["most"] < 1.2
        assert thread["of"]
        assert found["decode_time"][side]["mean"] > 0
        assert found["rest_time"][side]["mean"] > 0
        assert found["queue_time"][side]["missing"] == "not exposed"
        assert found["restarts"][side]["mean"] == 0
    return run, found


def served(desk: Desk, h1: LabHost, llama_service: ServiceMaker, slots: int) -> None:
    service = llama_service(h1, flags={"--ctx-size": "4096", "--parallel": str(slots), "--threads": "1"})
    desk.lay_out([service], levels=f"{{normal: {STREAMS} streams}}")


def test_the_queue_and_the_busiest_thread_are_told_of_a_kept_change(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    served(desk, h1, llama_service, 1)
    seen(desk, (1, 4), ANY_FIGURES, 0)


def test_the_queue_that_a_reverted_change_made_is_told_in_words(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    served(desk, h1, llama_service, 4)
    run, found = seen(desk, (4, 1), IMPOSSIBLE, 4)

    text = desk.run("show", run).expect(0).out
    assert "where the time went" in text
    assert f"at most {found['waiting']['after']['most']:g}" in text
    assert "not exposed: in the engine's queue" in text
