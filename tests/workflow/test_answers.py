"""What a change does to answers, from the workload to the verdict."""

from __future__ import annotations

from tests.workflow.stage import Stage

from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply

PLAN = """\
version: 1
service: chat
reason: a story
effort: {effort}
outage: 30m
steps:
  - change: {{parameter: {{name: {name}, to: {to}}}}}
    expect: neutral
"""
PROMPTS = [{"id": f"q{number}", "prompt": "once", "max_tokens": 8, "quality": True} for number in range(94)]


def changing(name: str, to: str, effort: str = "standard") -> str:
    return PLAN.format(name=name, to=to, effort=effort)


def cache_type(stage: Stage, effort: str = "standard") -> RunEnd:
    """A change of a setting that the engine's table marks as changing answers."""
    return apply(stage.order(changing("cache-type-k", "q8_0", effort)), stage.tools)


def by_cache(argv: list[str], prompt: str) -> str:
    return f"{prompt}, otherwise" if "q8_0" in argv else f"{prompt}, as ever"


def quality(stage: Stage) -> str:
    results = stage.journal.bodies("precheck")[-1]["results"]
    return next(str(result["state"]) for result in results if result["name"] == "quality_prompts")


def test_the_same_answers_let_a_change_pass_that_may_change_them() -> None:
    stage = Stage(workload=PROMPTS)
    stage.host.requests = len(PROMPTS)
    end = cache_type(stage)

    assert (end.last.outcome, end.exit_code) == (Outcome.KEPT, 0)
    assert quality(stage) == "passed"
    rows = {row["metric"]: row for row in stage.journal.bodies("verdict")[-1]["rows"]}
    assert rows["disagreement"]["state"] == "clear"


def test_other_answers_are_taken_back_and_called_quality() -> None:
    stage = Stage(workload=PROMPTS)
    stage.host.answers = by_cache
    end = cache_type(stage)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "regressed", 4)
    assert [reason["code"] for reason in stage.journal.bodies("verdict")[-1]["reasons"]] == ["quality"]
    assert stage.serving_as_before()


def test_a_workload_without_quality_prompts_is_advised_against_and_ends_without_a_verdict() -> None:
    stage = Stage()
    end = cache_type(stage)

    assert quality(stage) == "failed"
    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "inconclusive", 5)
    assert '"quality": true' in end.last.text


def test_a_quick_look_does_not_pass_a_change_that_may_change_answers() -> None:
    stage = Stage(workload=PROMPTS)
    end = cache_type(stage, "quick")
    assert (end.last.outcome, end.last.reason) == (Outcome.REVERTED, "inconclusive")


def test_answers_that_begin_to_run_in_loops_end_the_trial_in_its_first_pair() -> None:
    stage = Stage(workload=PROMPTS)
    stage.host.answers = lambda argv, prompt: "no " * 60 if argv[-1] == "5" else prompt
    end = apply(stage.order(changing("parallel", "5")), stage.tools)

    assert (end.last.outcome, end.exit_code) == (Outcome.REVERTED, 4)
    assert [reason["code"] for reason in stage.journal.bodies("verdict")[-1]["reasons"]] == ["looping_answers"]
    assert len(stage.journal.bodies("measure.outcome")) == 2
