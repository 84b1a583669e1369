"""What the watch of a step and the next baseline say of a verdict, and where they say nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.cli.test_compare import NOTHING, other_kernel, slower, two_runs
from tests.workflow.fake_host import FakeHost
from tests.workflow.live_stage import STEP, Users, live_stage
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text
from tests.workflow.test_trial import GAIN, carried_out, plan
from tests.workflow.test_watch import fails_to_answer, meanwhile, watching

from changectl.core.replaying.ledger import Ledger, Rate
from changectl.core.replaying.ledger_read import ledger


def opinions(found: Ledger, place: int = 0) -> list[tuple[str, bool]]:
    return [(one.by, one.right) for one in found.entries[place].opinions]


@pytest.mark.parametrize(
    ("between", "expected"),
    [(NOTHING, [("later_baseline", True)]), (slower, [("later_baseline", False)]), (other_kernel, [])],
)
def test_the_next_baseline_judges_what_was_kept_under_the_same_conditions(
    between: Callable[[Stage], None], expected: list[tuple[str, bool]]
) -> None:
    found = ledger(two_runs(between).journal.lines)

    assert (found.entries[0].said, opinions(found)) == ("keep", expected)
    assert found.entries[1].right is None


HARM = (160, 5)  # milliseconds to the first token and per token, where they were 40 and 5
WRONG = [("later_baseline", False)]


def improved(stage: Stage, since: tuple[int, int]) -> Ledger:
    """A gain that is kept after a trial of several pairs, and how fast the service was when it was measured again."""
    carried_out(stage, plan(BETTER, GAIN))
    stage.host.speed = lambda argv, streams: since
    carried_out(stage, plan(5, effort="quick"))
    return ledger(stage.journal.lines)


@pytest.mark.parametrize(("since", "expected"), [((20, 5), []), ((52, 5), []), (HARM, WRONG)])
def test_of_a_gain_that_was_kept_the_next_baseline_can_only_say_that_it_was_wrong(
    since: tuple[int, int], expected: list[tuple[str, bool]]
) -> None:
    found = improved(Stage(), since)

    assert (found.entries[0].verdict, opinions(found)) == ("improved", expected)


def taken_back(with_change: tuple[int, int], since: tuple[int, int]) -> Ledger:
    """A change during whose one phase the service was that fast, and how fast it was when it was measured again."""
    stage = Stage()
    stage.host.speed = lambda argv, streams: with_change if argv[-1] == "5" else (40, 5)
    carried_out(stage, plan(5, effort="quick"))
    stage.host.speed = lambda argv, streams: since if argv[-1] == "4" else (40, 5)
    carried_out(stage, plan(6, effort="quick"))
    return ledger(stage.journal.lines)


def test_a_false_revert_is_not_called_right_because_the_saved_configuration_is_sound() -> None:
    stage = Stage()
    # Whatever the configuration: the host is slow until the service is started once more.
    stage.host.speed = lambda argv, streams: HARM if stage.host.starts == 1 else (40, 5)
    carried_out(stage, plan(5, effort="quick"))
    carried_out(stage, plan(5, effort="quick"))
    found = ledger(stage.journal.lines)

    assert [(entry.verdict, entry.right) for entry in found.entries] == [("regressed", None), ("no_gross_harm", None)]
    assert found.rate("revert") == Rate(wrong=0, judged=0, verdicts=1)
    assert found.unjudged[0].name == "R1/1"


@pytest.mark.parametrize(
    ("with_change", "since", "expected"),
    [
        (HARM, HARM, WRONG),
        (HARM, (240, 20), WRONG),
        (HARM, (70, 5), []),  # worse than it was, and far from as bad
        ((65, 5), (45, 20), []),  # bad in another figure
    ],
)
def test_harm_that_stays_when_the_change_goes_was_none_of_the_changes(
    with_change: tuple[int, int], since: tuple[int, int], expected: list[tuple[str, bool]]
) -> None:
    found = taken_back(with_change, since)

    assert (found.entries[0].said, opinions(found)) == ("revert", expected)
    assert found.rate("revert") == Rate(wrong=len(expected), judged=len(expected), verdicts=1)


def test_a_broken_limit_is_no_gross_harm_that_could_have_stayed() -> None:
    stage = Stage(service_text=SERVICE.replace("limits:", "slo: {ttft_user_p50: <= 42ms}\nlimits:"))
    stage.host.speed = lambda argv, streams: (44 if argv[-1] == "5" else 40, 5)
    carried_out(stage, plan(5, effort="quick"))
    stage.host.speed = lambda argv, streams: HARM
    carried_out(stage, plan(6, effort="quick"))
    found = ledger(stage.journal.lines)

    assert (found.entries[0].verdict, opinions(found)) == ("regressed", [])


def test_a_limit_that_was_broken_before_already_makes_no_verdict_wrong() -> None:
    stage = Stage(service_text=SERVICE.replace("limits:", "slo: {ttft_user_p50: <= 30ms}\nlimits:"))
    stage.host.speed = lambda argv, streams: (20 if argv[-1] == "5" else 60, 5)
    carried_out(stage, plan(5, effort="quick"))  # within it since
    stage.host.speed = lambda argv, streams: (61, 5)
    carried_out(stage, plan(6, effort="quick"))
    found = ledger(stage.journal.lines)

    assert (found.entries[0].verdict, opinions(found)) == ("no_gross_harm", [("later_baseline", True)])


def test_the_steps_of_one_run_judge_each_other_too() -> None:
    stage = Stage()
    stage.apply(5, 6)
    found = ledger(stage.journal.lines)

    assert [entry.name for entry in found.entries] == ["R1/1", "R1/2"]
    assert opinions(found) == [("later_baseline", True)]


def watched_live(users: Users, halfway: Callable[[FakeHost], None] | None = None) -> Ledger:
    stage = live_stage(users)
    if halfway is not None:
        meanwhile(stage, halfway)
    text = plan_text(extra=f"{STEP}    watch: 2m\n").replace("effort: quick", "effort: {observe: 5m}")
    carried_out(stage, text)
    return ledger(stage.journal.lines)


def test_a_watch_that_saw_enough_live_requests_says_that_keeping_was_right() -> None:
    found = watched_live(Users(rate=2.0))

    assert opinions(found) == [("watch", True)]
    assert "live requests" in found.entries[0].opinions[0].why


def test_a_watch_that_saw_no_or_few_live_requests_says_nothing() -> None:
    alone = Stage()
    watching(alone)

    assert opinions(ledger(alone.journal.lines)) == []
    assert opinions(watched_live(Users(rate=1.0))) == []  # 120 of them


def test_a_watch_during_which_failures_could_not_be_counted_all_the_time_says_nothing() -> None:
    users = Users(rate=20.0)

    def counters_fall(host: FakeHost) -> None:
        users.rate = 15.0

    assert opinions(watched_live(users, counters_fall)) == []


def test_a_watch_that_broke_says_that_the_verdict_missed_it() -> None:
    stage = Stage()
    meanwhile(stage, fails_to_answer)
    watching(stage)
    found = ledger(stage.journal.lines)

    assert (found.entries[0].said, opinions(found)) == ("keep", [("watch", False)])
    assert found.rate("keep").share == 1.0
