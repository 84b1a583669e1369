"""Faults strike where they are told to, and a fault that did not strike is not counted as survived."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from tests.faults import inside
from tests.faults.cells import STATES, Cell, Point, local_cells, points, sample, states
from tests.faults.worlds import Result, Worlds, worlds
from tests.lab.harness.install import demanded

pytest.importorskip("xllamacpp", reason="the engine comes with the extra `demo`")

KEPT = (
    "run.opened", "contact", "capture.intent", "capture.outcome", "measure.intent", "measure.outcome", "write.intent",
    "write.outcome", "measure.intent", "measure.outcome", "verdict", "step.closed", "run.closed",
)  # fmt: skip
REVERTED = (*KEPT[:11], "restore.intent", "restore.outcome", "step.closed", "run.closed")


@pytest.fixture(scope="module")
def here() -> Iterator[Worlds]:
    reason = inside.possible()
    if reason is not None:
        if demanded():
            pytest.fail(f"CI leaves nothing out, but: {reason}", pytrace=False)
        pytest.skip(f"cells need namespaces of their own: {reason}")
    with worlds(tries=1) as made:
        yield made


@pytest.fixture(scope="module")
def struck(here: Worlds) -> dict[str, Result]:
    asked = [
        ("kill", Point("before", "write.intent", 1, "")),
        ("kill", Point("after", "write.intent", 1, "")),
        ("kill", Point("after", "measure.intent", 2, "")),
        ("term", Point("after", "measure.intent", 1, "")),
        ("kill", Point("after", "write.intent", 7, "")),
    ]
    cells = [Cell("local", "kept", fault, point) for fault, point in asked]
    return {f"{result.cell.fault}-{result.cell.point}": result for result in here.run_all(cells)}


def told(result: Result) -> dict[str, object]:
    assert "error" not in result.told, result.told["error"]
    return result.told


def test_a_kill_before_an_event_leaves_the_event_out(struck: dict[str, Result]) -> None:
    found = told(struck["kill-before-write.intent-1"])
    assert found["exit"] == -signal.SIGKILL
    assert found["struck"]
    assert found["kinds"][-1] == "measure.outcome"  # type: ignore[index]


def test_a_kill_after_an_event_leaves_it_as_the_last(struck: dict[str, Result]) -> None:
    found = told(struck["kill-after-write.intent-1"])
    assert found["exit"] == -signal.SIGKILL
    assert found["kinds"][-1] == "write.intent"  # type: ignore[index]


def test_the_second_event_of_a_kind_is_another_point_than_the_first(struck: dict[str, Result]) -> None:
    found = told(struck["kill-after-measure.intent-2"])
    assert found["kinds"].count("measure.intent") == 2  # type: ignore[attr-defined]
    assert found["kinds"][-1] == "measure.intent"  # type: ignore[index]


def test_a_signal_is_answered_by_the_program_itself(struck: dict[str, Result]) -> None:
    found = told(struck["term-after-measure.intent-1"])
    assert found["exit"] == 130
    assert found["struck"]
    assert struck["term-after-measure.intent-1"].sound


def test_a_fault_that_never_struck_counts_as_failed(struck: dict[str, Result]) -> None:
    result = struck["kill-after-write.intent-7"]
    assert told(result)["exit"] == 0
    assert told(result)["first"][0] == "kept"  # type: ignore[index]
    assert (result.word, result.sound) == ("no trace", False)


def test_every_event_has_a_moment_before_and_after_it() -> None:
    found = points(KEPT)
    assert len(found) == 2 * len(KEPT)
    assert len(set(map(str, found))) == len(found)
    assert str(found[-4]) == "before-step.closed-1"


def test_a_state_begins_after_its_event_and_lasts_until_the_next() -> None:
    found = {str(point): point.state for point in points(KEPT)}
    assert found["before-write.intent-1"] == "baseline"
    assert found["after-write.intent-1"] == "writing"
    assert found["before-write.outcome-1"] == "writing"
    assert found["after-measure.intent-2"] == "measuring"
    assert [point.state for point in states(KEPT)] == [
        "opened", "contacted", "saving", "saved", "baseline", "writing", "starting", "measuring", "judged", "closed",
    ]  # fmt: skip


def test_the_sample_meets_every_fault_and_every_state_and_is_always_the_same() -> None:
    cells = list(local_cells({"kept": KEPT, "reverted": REVERTED, "dying": REVERTED}))
    chosen = sample(cells, 20)
    assert chosen == sample(cells, 20)
    assert len(set(chosen)) == 20
    assert {cell.fault for cell in chosen} == {cell.fault for cell in cells}
    assert {cell.point.state for cell in chosen} == {cell.point.state for cell in cells}
    assert {cell.point.state for cell in chosen} <= set(STATES.values())
