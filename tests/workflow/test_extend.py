"""A trial that ended without a verdict goes on in another run: same phases, same order, the looks that are left."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.stage import BETTER, WORSE, Stage
from tests.workflow.test_answers import changing
from tests.workflow.test_trial import GAIN, SAME, letters, plan

from changectl.core.errors import Refused
from changectl.core.history.reading import SUMMARY_KINDS
from changectl.core.history.runs import runs
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.extend import LONGEST_AGO, Extension, what_to_extend
from changectl.workflow.recover import exit_code

SHORT = "{time: 32s}"  # two pairs of the fake host's phases; without knowledge of its noise they decide nothing


def read(stage: Stage, run: str, more: int | None = None) -> Extension:
    known = runs([event for event in stage.journal.lines if event.kind in SUMMARY_KINDS])
    return what_to_extend(run, stage.journal.events, known, stage.tools.clock.now(), more)


def extended(stage: Stage, text: str, run: str = "R1", more: int | None = None) -> RunEnd:
    return apply(stage.order(text), stage.tools, partial(read, stage, run, more))


def undecided(text: str) -> Stage:
    """A trial that ended without a verdict after two pairs."""
    stage = Stage()
    end = apply(stage.order(text), stage.tools)
    assert (end.last.outcome, end.last.reason, letters(stage)) == (Outcome.REVERTED, "inconclusive", "ABBA")
    assert stage.serving_as_before()
    return stage


def refusal(stage: Stage, text: str, run: str = "R1", more: int | None = None) -> Refused:
    """Why it cannot go on; nothing is opened."""
    opened, starts = len(stage.journal.bodies("run.opened")), stage.host.starts
    with pytest.raises(Refused) as caught:
        extended(stage, text, run, more)
    assert (len(stage.journal.bodies("run.opened")), stage.host.starts) == (opened, starts)
    return caught.value


def test_more_pairs_decide_it_and_the_change_is_kept() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = undecided(text)
    end = extended(stage, text)

    assert (end.run, end.last.outcome, end.exit_code) == ("R2", Outcome.KEPT, 0)
    verdict = stage.journal.bodies("verdict")[-1]
    assert verdict["verdict"] == "improved"
    assert letters(stage).startswith("ABBAAB")
    numbers = [body["number"] for body in stage.journal.bodies("measure.outcome")]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"
    assert stage.host.keeper.decided["R2.1"]["outcome"] == "kept"


def test_a_gain_that_is_not_there_is_taken_back_at_the_end_as_ever() -> None:
    text = plan(SAME, GAIN, SHORT)
    stage = undecided(text)
    end = extended(stage, text, more=2)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "unchanged", 4)
    assert stage.serving_as_before()


def test_harm_that_shows_only_now_ends_it_too() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    stage.host.speed = lambda argv, streams: (200, 50) if argv[-1] == "5" else (40, 5)
    end = extended(stage, text, more=3)

    assert (end.last.outcome, end.exit_code) == (Outcome.REVERTED, 4)
    assert stage.serving_as_before()


def test_the_runs_are_linked_and_the_first_one_is_as_it_was() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    before = [event for event in stage.journal.lines if event.run == "R1"]
    extended(stage, text)

    assert [event for event in stage.journal.lines if event.run == "R1"] == before
    first, second = runs(stage.journal.lines)
    assert (first.extended_by, second.extends) == ("R2", "R1")


def test_looks_are_counted_over_all_runs_of_a_trial() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = undecided(text)
    stage.host.speed = lambda argv, streams: (40 + 20 * (stage.host.starts % 3), 5)  # so noisy that nothing is decided
    one = extended(stage, text, more=2)
    assert one.last.reason == "inconclusive"
    two = extended(stage, text, "R2", more=4)

    taken = [body["looks"] for body in stage.journal.bodies("verdict")]
    assert taken[0] == [1, 2]
    assert all(set(before) < set(after) for before, after in pairwise(taken))
    assert len(taken[-1]) <= 6
    assert taken[-1][-1] == 8
    assert letters(stage) == "ABBA" * 4
    assert two.last.reason == "inconclusive"
    assert refusal(stage, text, "R3", more=1).reason == "no_pairs_left"


def test_more_than_a_trial_can_have_is_refused() -> None:
    text = plan(SAME, "neutral", SHORT)
    error = refusal(undecided(text), text, more=7)
    assert error.reason == "no_pairs_left"
    assert "at most 6" in str(error)


def test_two_runs_may_not_go_on_with_the_same_trial() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = undecided(text)
    stage.host.speed = lambda argv, streams: (40 + 20 * (stage.host.starts % 3), 5)
    extended(stage, text, more=1)
    error = refusal(stage, text)
    assert (error.reason, "run R2 has gone on" in str(error)) == ("extended_already", True)


def test_one_that_was_refused_before_it_measured_does_not_count() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = undecided(text)
    stage.host.restorable = False
    assert extended(stage, text).exit_code == 3
    stage.host.restorable = True
    assert extended(stage, text).exit_code == 0


def test_old_phases_are_not_gone_on_with() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    stage.world.seconds += LONGEST_AGO + 3600
    error = refusal(stage, text)
    assert (error.reason, "25 h ago" in str(error)) == ("too_old", True)


def test_phases_from_the_future_are_not_gone_on_with_since_their_age_is_unknown() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    stage.world.seconds -= 7200
    error = refusal(stage, text)

    assert error.reason == "too_old"
    assert "it was set back since" in str(error)


@pytest.mark.parametrize(
    "otherwise",
    [{"summary": {"format": 99}}, {"summary": {"format": 1, "levels": [{"n": 3}]}}, {"summary": None}, {"phase": None}],
)
def test_phases_that_another_version_recorded_otherwise_are_refused_with_what_to_do(otherwise: dict[str, Any]) -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    stage.journal.lines = [
        replace(event, body=without({**event.body, **otherwise})) if event.kind == "measure.outcome" else event
        for event in stage.journal.lines
    ]
    error = refusal(stage, text)

    assert error.reason == "no_trial"
    assert "cannot be read by this version" in str(error)
    assert "apply the plan anew" in str(error)


def without(body: dict[str, Any]) -> dict[str, Any]:
    """What is None is not there at all."""
    return {name: value for name, value in body.items() if value is not None}


def test_another_plan_is_another_trial_and_what_differs_is_named() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = Stage()
    covers = {"plan": "a", "service": "b", "file w.jsonl": "c", "hosts": "gpu1", "changectl": "0"}
    apply(replace(stage.order(text), covers=covers), stage.tools)
    other = replace(stage.order(text), plan_digest="other", covers={**covers, "file w.jsonl": "d", "changectl": "1"})
    with pytest.raises(Refused) as caught:
        apply(other, stage.tools, partial(read, stage, "R1"))
    assert caught.value.reason == "plan_differs"
    assert "changectl, file w.jsonl" in str(caught.value)


def test_a_host_that_is_not_as_it_was_is_refused_before_anything_is_written() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    starts, stage.host.kernel = stage.host.starts, "6.2"
    end = extended(stage, text)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REFUSED, "conditions_differ", 3)
    assert "kernel: 6.1 -> 6.2" in end.last.text
    assert stage.host.starts == starts
    assert stage.serving_as_before()


def test_a_decided_trial_is_not_tried_again() -> None:
    text = plan(WORSE, "neutral")
    stage = Stage()
    apply(stage.order(text), stage.tools)
    assert refusal(stage, text).reason == "decided"


def test_a_quick_look_has_no_pairs_to_go_on_with() -> None:
    text = changing("cache-type-k", "q8_0", "quick")  # without quality prompts that is inconclusive
    stage = Stage()
    assert apply(stage.order(text), stage.tools).last.reason == "inconclusive"
    assert refusal(stage, text).reason == "no_trial"


def test_a_run_that_never_came_to_a_verdict_has_no_trial() -> None:
    text = plan(BETTER, GAIN, "{time: 3s}")
    stage = Stage()
    apply(stage.order(text), stage.tools)
    error = refusal(stage, text)
    assert (error.reason, "effort_too_short" in str(error)) == ("no_trial", True)


def test_a_change_that_is_in_force_has_to_be_taken_back_first() -> None:
    text = plan(BETTER, GAIN, SHORT) + "    on_inconclusive: ask\n"
    stage = Stage(answer=True)
    end = apply(stage.order(text), stage.tools)
    assert end.last.outcome is Outcome.KEPT_UNJUDGED
    error = refusal(stage, text)
    assert (error.reason, "changectl revert R1" in str(error)) == ("not_back", True)


def test_a_run_without_an_end_is_recovered_first() -> None:
    text = plan(SAME, "neutral", SHORT)
    stage = undecided(text)
    stage.journal.lines = [event for event in stage.journal.lines if event.kind != "run.closed"]
    assert refusal(stage, text).reason == "unfinished_run"


@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man first", "recover first"])
def test_wherever_the_controller_dies_meanwhile_the_run_gets_an_end_that_is_true(acted: bool) -> None:
    text = plan(BETTER, GAIN, SHORT)
    whole = undecided(text)
    first = len(whole.world.trace)
    extended(whole, text)
    for number in range(first + (3 if acted else 9), len(whole.world.trace) + 1, 41):
        stage = undecided(text)
        stage.world.before = die_before(stage.world, lambda _, seen, at=number - first: seen >= at)
        with contextlib.suppress(Killed):
            extended(stage, text)
        stage.world.before = lambda name: None
        if acted:
            stage.host.lease_runs_out()
        if not stage.journal.events("R2") or any(one.kind == "run.closed" for one in stage.journal.events("R2")):
            continue
        ending = settle(stage, "R2")
        assert exit_code(ending) == 0, number
        if ending.outcome is Outcome.KEPT:
            assert stage.host.keeper.decided["R2.1"]["outcome"] == "kept", number
        else:
            assert stage.serving_as_before(), number
        assert stage.host.keeper.armed == {}, number
