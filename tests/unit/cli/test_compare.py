"""`changectl compare`: two real runs under the gates of a trial; no verdict where one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits
from tests.unit.cli.recorded import keep
from tests.workflow.stage import Stage
from tests.workflow.test_rollout import THREE
from tests.workflow.test_trial import carried_out, plan

from changectl.core.history.reading import SUMMARY_KINDS
from changectl.core.history.runs import runs
from changectl.core.judging.judgement import HardEvent
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.replaying.comparing import GATES, Comparison, Side, compare
from changectl.core.replaying.replay import raw_trials, side_of

NOTHING = lambda stage: None  # noqa: E731 - a story in which nothing happens


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def two_runs(between: Callable[[Stage], None] = NOTHING, names: tuple[str, ...] = ("gpu1",)) -> Stage:
    """4 slots became 5, and later 6; with 8 streams all of them are as fast."""
    stage = Stage(names)
    assert carried_out(stage, plan(5, effort="quick")).exit_code == 0
    between(stage)
    carried_out(stage, plan(6, effort="quick"))
    return stage


def other_kernel(stage: Stage) -> None:
    stage.host.kernel = "6.2"


def other_workload(stage: Stage) -> None:
    stage.workload.append({"id": "q", "prompt": "twice"})


def slower(stage: Stage) -> None:
    stage.host.speed = lambda argv, streams: (160, 20)


@pytest.mark.parametrize(
    ("between", "code", "verdict", "told"),
    [
        (NOTHING, 0, "no_gross_harm", "not measured in turns"),
        (slower, 0, "regressed", "beyond the limit"),
        (other_kernel, 3, None, "kernel: 6.1 -> 6.2"),
        (other_workload, 3, None, "undeclared difference: workload"),
    ],
)
def test_two_runs_are_compared_only_where_every_gate_holds(
    between: Callable[[Stage], None], code: int, verdict: str | None, told: str, run: Run, project: Path
) -> None:
    keep(two_runs(between), project)
    ended = run("compare", "R1", "R2", "--json")

    fits(ended.json, "compare")
    judgement = ended.json["judgement"]
    assert (ended.code, ended.json["comparable"]) == (code, verdict is not None)
    assert (judgement and judgement["verdict"]) == verdict
    assert [gate["name"] for gate in ended.json["gates"]] == list(GATES)
    said = run("compare", "R1", "R2")
    assert said.code == code
    assert told in " ".join(said.out.split())
    assert ("no verdict" in said.out) == (verdict is None)


@pytest.mark.parametrize(
    ("one", "other", "taken", "holds"),
    [
        ("R1", "R2", ("B", "B"), True),
        ("R1:A", "R2:A", ("A", "A"), True),
        ("R1:B", "R2:A", ("B", "A"), True),
        ("R1:A", "R1:B", ("A", "B"), True),
        ("R1/1:A", "R2/1", ("A", "B"), True),
    ],
)
def test_either_configuration_of_a_run_can_be_meant(
    one: str, other: str, taken: tuple[str, str], holds: bool, run: Run, project: Path
) -> None:
    keep(two_runs(), project)
    found = run("compare", one, other, "--json").json

    assert (found["before"]["configuration"], found["after"]["configuration"]) == taken
    assert found["comparable"] is holds


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("R1:C", "R2"), "write R1:A for the saved configuration"),
        (("R1", "R9"), "there is no run"),
        (("R1", "R2", "--host", "gpu7"), "gpu1"),
    ],
)
def test_what_is_not_there_is_one_clear_error(arguments: tuple[str, ...], told: str, run: Run, project: Path) -> None:
    keep(two_runs(), project)
    ended = run("compare", *arguments)

    assert (ended.code, ended.out, told in ended.err) == (2, "", True), ended.err


def test_of_several_instances_one_has_to_be_named(run: Run, project: Path) -> None:
    keep(two_runs(names=THREE), project)

    assert "--host, one of gpu1, gpu2, gpu3" in run("compare", "R1", "R2").err
    found = run("compare", "R1", "R2", "--host", "gpu2", "--json").json
    assert (found["before"]["host"], found["comparable"]) == ("gpu2", True)


@pytest.fixture(scope="module")
def sides() -> tuple[Side, Side]:
    """What the first run left, and what the second one found: the same configuration, measured twice."""
    stage = two_runs()
    known = runs([event for event in stage.journal.lines if event.kind in SUMMARY_KINDS])
    trials = [raw_trials(one.run, None, stage.journal.events, known, stage.records.get_blob) for one in known]
    return side_of(known[0], trials[0], None, "B"), side_of(known[1], trials[1], None, "A")


def changed(side: Side, **figures: Any) -> Side:
    """The same side, its level with other figures."""

    def level(one: LevelMeasurement) -> LevelMeasurement:
        return replace(one, **figures)

    measured = [replace(one.measurement, levels=tuple(map(level, one.measurement.levels))) for one in side.phases]
    return replace(side, phases=[replace(one, measurement=new) for one, new in zip(side.phases, measured, strict=True)])


def failing(found: Comparison) -> list[str]:
    return [gate.name for gate in found.gates if not gate.holds]


def test_the_same_configuration_measured_twice_passes_every_gate(sides: tuple[Side, Side]) -> None:
    found = compare(*sides)

    assert (failing(found), found.comparable) == ([], True)
    assert found.judgement is not None
    assert found.judgement.verdict == "no_gross_harm"
    assert [row.change for row in found.judgement.rows if row.metric == "ttft_user_p50"] == [0.0]


@pytest.mark.parametrize(
    ("figures", "gate"),
    [
        ({"cache_hit": 0.5}, "cache state"),
        ({"lag_p99": 9.0}, "load that was reached"),
        ({"in_flight_mean": 0.5}, "load that was reached"),
        ({"streams": 4}, "the same load"),
        ({"ok": 3}, "enough answers"),
        ({"per_prompt": {"p0": (80.0, 10.0), "p1": (80.0, 10.0)}}, "equal input"),
        ({"per_prompt": {"p0": (8.0, 50.0), "p1": (8.0, 50.0)}}, "equal work"),
    ],
)
def test_each_gate_fails_by_itself_and_then_there_is_no_verdict(
    figures: dict[str, Any], gate: str, sides: tuple[Side, Side]
) -> None:
    before, after = sides
    found = compare(before, changed(after, **figures))

    assert gate in failing(found)
    assert found.judgement is None
    assert all(str(reason) for one in found.gates for reason in one.reasons)


def test_other_services_and_instances_are_named(sides: tuple[Side, Side]) -> None:
    before, after = sides
    found = compare(before, replace(after, service="search", host="gpu2"))

    assert failing(found) == ["same service and instance"]
    assert [reason.code for reason in found.gates[0].reasons] == ["other_service", "other_instance"]


def test_two_changes_together_are_no_single_difference(sides: tuple[Side, Side]) -> None:
    before, after = sides
    facts = after.phases[0].conditions.facts
    moved = {**facts, "settings": {**facts["settings"], "parallel": "9", "ctx-size": "512"}}
    conditions = replace(after.phases[0].conditions, facts=moved)
    found = compare(before, replace(after, phases=[replace(after.phases[0], conditions=conditions)]))

    assert failing(found) == ["a single difference"]
    assert "ctx-size" in str(found.gates[2].reasons[0])


def test_an_event_in_the_first_run_spoils_it_and_one_in_the_second_is_harm(sides: tuple[Side, Side]) -> None:
    before, after = sides
    event = HardEvent("oom_kill", "memory ran out", "B")
    spoiled = replace(before, phases=[replace(one, events=(event,)) for one in before.phases])
    harmed = replace(after, phases=[replace(one, events=(replace(event, phase="A"),)) for one in after.phases])

    assert failing(compare(spoiled, after)) == ["sound measurements"]
    found = compare(before, harmed)
    assert found.judgement is not None
    assert found.judgement.verdict == "regressed"


def test_a_phase_that_went_wrong_once_is_no_gross_harm_of_most(sides: tuple[Side, Side]) -> None:
    before, after = sides
    slow = changed(after, latency={**after.phases[0].measurement.levels[0].latency, "ttft_user": {"p50": 9.0}})
    three = replace(before, phases=[replace(before.phases[0], number=number) for number in (1, 2, 3)])
    once = replace(after, phases=[after.phases[0], slow.phases[0], after.phases[0]])
    twice = replace(after, phases=[slow.phases[0], slow.phases[0], after.phases[0]])

    found = [compare(three, side).judgement for side in (once, twice)]
    assert [one and one.verdict for one in found] == ["no_gross_harm", "regressed"]
    (row,) = [row for row in found[0].rows if row.metric == "ttft_user_p50"] if found[0] else [None]
    assert row is not None
    assert (row.state, row.note) == ("within", "beyond it in 1 of 3 phases")
