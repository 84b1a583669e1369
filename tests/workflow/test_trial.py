"""Several pairs: saved and new configuration in turns, each started anew, until the evidence decides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import UNIT, FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.open_run import open_run
from changectl.workflow.recover import exit_code

PLAN = """\
version: 1
service: chat
reason: a story
effort: {effort}
outage: {outage}
steps:
  - change: {{parameter: {{name: parallel, to: {slots}}}}}
    expect: {expect}
"""
SAME = 5  # slots: 8 streams get as little out of 5 as of 4
GAIN = "{ttft_user: -20%}"


def plan(slots: int, expect: str = "neutral", effort: str = "standard", outage: str = "30m") -> str:
    return PLAN.format(slots=slots, expect=expect, effort=effort, outage=outage)


def carried_out(stage: Stage, text: str) -> RunEnd:
    return apply(stage.order(text), stage.tools)


def letters(stage: Stage) -> str:
    """The phases that were measured, in order."""
    return "".join(str(body["phase"]) for body in stage.journal.bodies("measure.outcome"))


def test_a_gain_is_seen_after_some_pairs_and_the_change_runs_at_the_end() -> None:
    stage = Stage()
    end = carried_out(stage, plan(BETTER, GAIN))

    assert end.exit_code == 0
    assert stage.journal.bodies("verdict")[-1]["verdict"] == "improved"
    assert letters(stage) == "ABBAABBA"  # nothing is known of this host's noise, so it takes the whole effort
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"
    assert b"--parallel 8\n" in stage.host.files[UNIT]


def test_a_harmless_change_that_promised_nothing_is_kept() -> None:
    stage = Stage()
    end = carried_out(stage, plan(SAME))

    assert (end.last.outcome, end.exit_code) == (Outcome.KEPT, 0)
    assert stage.journal.bodies("verdict")[-1]["verdict"] == "unchanged"
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "5"


def test_a_promised_gain_that_is_not_there_is_taken_back_for_cause() -> None:
    stage = Stage()
    end = carried_out(stage, plan(SAME, GAIN))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "unchanged", 4)
    assert stage.serving_as_before()


def test_gross_harm_ends_it_inside_the_first_pair() -> None:
    stage = Stage()
    end = carried_out(stage, plan(WORSE))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "regressed", 4)
    assert letters(stage) == "AB"
    assert stage.serving_as_before()


def test_every_phase_begins_with_a_fresh_start_and_every_swap_is_on_record() -> None:
    stage = Stage()
    carried_out(stage, plan(BETTER, GAIN))

    acts = [name for name in stage.world.acts() if name.split()[-1] in
            ("restart.intent", "write.intent", "restore.intent", "measure.intent", "disarm.intent", "apply",
             "service", "restore")]  # fmt: skip
    again = ["journal restart.intent", "play gpu1 service", "journal measure.intent"]
    there = ["journal write.intent", "play gpu1 apply", "journal measure.intent"]
    back = ["journal restore.intent", "play gpu1 restore", "journal measure.intent"]
    assert acts == [*again, *there, *again, *back] * 2 + [*there[:2], "journal disarm.intent"]
    assert [body["fresh_start"] for body in stage.journal.bodies("measure.outcome")] == [True] * 8
    assert [body["number"] for body in stage.journal.bodies("measure.outcome")] == [*range(1, 9)]


def test_the_dead_man_is_armed_from_the_first_start_to_the_decision() -> None:
    stage = Stage()
    armed: list[bool] = []
    stage.host.on_call = lambda host, call: armed.append("R1.1" in host.keeper.armed) if call == "measure" else None
    carried_out(stage, plan(BETTER, GAIN))

    assert armed == [True] * 8
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept"


def test_no_phase_begins_that_the_plan_s_outage_has_no_room_for() -> None:
    stage = Stage()
    stage.host.load_seconds = 10.0
    end = carried_out(stage, plan(BETTER, GAIN, outage="45s"))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "inconclusive", 5)
    assert "the plan's outage is used up" in end.last.text
    assert stage.journal.bodies("step.closed")[-1]["outage_seconds"] <= 45 + 10.5  # the way back is not counted
    assert stage.serving_as_before()


def test_an_outage_in_which_no_pair_fits_ends_it_before_anything_is_written() -> None:
    stage = Stage()
    stage.host.load_seconds = 20.0
    end = carried_out(stage, plan(BETTER, GAIN, outage="30s"))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "outage_too_short", 5)
    assert stage.journal.bodies("write.intent") == []
    assert stage.serving_as_before()


def test_where_the_load_time_is_known_nothing_is_even_started_for_an_outage_that_is_too_short() -> None:
    stage = Stage()
    stage.memory.load = 20.0
    end = carried_out(stage, plan(BETTER, GAIN, outage="30s"))

    assert (end.last.outcome, end.last.reason) == (Outcome.REFUSED, "outage_too_short")
    assert end.exit_code == 3
    assert stage.host.starts == 0


def test_a_time_has_as_many_pairs_as_fit_into_it() -> None:
    stage = Stage()
    carried_out(stage, plan(SAME, effort="{time: 40s}"))
    assert 2 <= len(letters(stage)) <= 6


def test_a_time_holds_also_where_later_starts_take_longer_than_the_first() -> None:
    stage = Stage()

    def slower(host: FakeHost) -> None:
        host.load_seconds = 1.0 if host.starts < 3 else 15.0

    stage.host.on_start = slower
    ended = [0.0]
    stage.host.on_call = lambda host, call: ended.append(stage.world.seconds) if call == "measure" else None
    end = carried_out(stage, plan(SAME, effort="{time: 90s}"))

    assert end.last.reason == "inconclusive"
    assert len(letters(stage)) >= 2
    assert ended[-1] + 5 <= 90
    assert stage.serving_as_before()


def test_a_time_has_more_pairs_where_the_first_start_was_the_slowest() -> None:
    stage = Stage()
    stage.host.load_seconds = 12.0
    stage.host.on_start = lambda host: setattr(host, "load_seconds", 1.0 if host.starts > 1 else 12.0)
    carried_out(stage, plan(SAME, effort="{time: 80s}"))
    assert stage.world.seconds < 95


def test_what_the_new_configuration_left_is_kept_before_the_saved_one_is_started() -> None:
    stage = Stage()
    stage.host.on_start = lambda host: host.log.append(" ".join(host.process.argv if host.process else []))
    carried_out(stage, plan(SAME, GAIN))

    kept = [stage.records.blobs[str(body["blob"])].decode() for body in stage.journal.bodies("evidence.outcome")]
    acts = [name for name in stage.world.acts() if name in ("journal evidence.outcome", "play gpu1 restore")]
    assert acts == [*["journal evidence.outcome", "play gpu1 restore"] * len(kept), "play gpu1 restore"]
    assert all("--parallel 5" in text for text in kept)
    assert len(kept) >= 2


def test_what_is_left_after_a_phase_on_the_saved_configuration_is_not_taken_for_the_change_s() -> None:
    stage = Stage()
    carried_out(stage, plan(SAME, GAIN))  # ends after the fourth pair, whose last phase is A
    assert letters(stage)[-1] == "A"
    acts = [name for name in stage.world.acts() if name in ("journal evidence.outcome", "journal verdict")]
    assert acts[-1] == "journal verdict"


def test_a_time_in_which_no_pair_fits_ends_before_anything_is_written() -> None:
    stage = Stage()
    end = carried_out(stage, plan(BETTER, GAIN, effort="{time: 3s}"))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "effort_too_short", 5)
    assert "one pair takes" in end.last.text
    assert stage.journal.bodies("write.intent") == []
    assert stage.serving_as_before()


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked_with_the_change_in_force_and_no_means_back(answer: bool) -> None:
    stage = Stage(answer=answer)
    stage.host.load_seconds = 10.0
    text = plan(BETTER, GAIN, outage="60s") + "    on_inconclusive: ask\n"
    end = carried_out(stage, text)

    assert stage.asked
    if answer:
        assert (end.last.outcome, end.exit_code) == (Outcome.KEPT_UNJUDGED, 0)
        assert stage.host.process is not None
        assert stage.host.process.argv[-1] == "8"
    else:
        assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "inconclusive", 5)
        assert stage.serving_as_before()


def at_call(stage: Stage, play: str, number: int, act: Callable[[FakeHost], None]) -> None:
    """Something happens right before the play of that name is carried out for the so-manieth time."""
    seen = 0

    def happen(host: FakeHost, call: str) -> None:
        nonlocal seen
        seen += call == play
        if call == play and seen == number:
            act(host)

    stage.host.on_call = happen


def test_what_somebody_writes_between_two_phases_is_no_refusal_but_ends_with_the_whole_way_back() -> None:
    stage = Stage()

    def edit(host: FakeHost) -> None:
        host.files[UNIT] = host.files[UNIT].replace(b"--parallel 4", b"--parallel 3")

    at_call(stage, "apply", 2, edit)
    end = carried_out(stage, plan(BETTER, GAIN))

    assert end.last.reason == "changed_by_other"
    assert end.last.outcome in (Outcome.REVERT_FAILED, Outcome.REVERT_UNVERIFIED)
    assert b"--parallel 3" in stage.host.files[UNIT]


def test_a_saved_configuration_that_does_not_come_up_again_is_not_held_against_the_change() -> None:
    stage = Stage()
    at_call(stage, "restore", 1, lambda host: setattr(host, "refuses", once(host)))
    end = carried_out(stage, plan(BETTER, GAIN))

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "saved_did_not_start", 5)
    assert stage.serving_as_before()


def once(host: FakeHost) -> Callable[[list[str]], str | None]:
    def refuse(_: list[str]) -> str | None:
        host.refuses = lambda _: None
        return "error: out of memory"

    return refuse


def test_without_a_fresh_start_for_every_phase_nothing_is_good_enough_to_be_kept() -> None:
    stage = Stage()

    def same_process(host: FakeHost) -> None:
        assert host.process is not None
        host.process.pid = 200  # as if nothing had been started

    stage.host.on_start = same_process
    end = carried_out(stage, plan(BETTER, GAIN))

    assert stage.journal.bodies("verdict")[-1]["verdict"] == "no_gross_harm"
    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "inconclusive", 5)
    assert stage.serving_as_before()


def test_an_instance_that_has_the_value_already_takes_no_part() -> None:
    stage = Stage(("gpu1", "gpu2"))
    other = stage.hosts["gpu2"]
    other.files[UNIT] = other.files[UNIT].replace(b"--parallel 4", b"--parallel 8")
    other.restart()
    other.starts, other.stale = 0, False
    assert other.process is not None
    other.process.started = -3600.0
    end = carried_out(stage, plan(BETTER, GAIN))

    assert (end.last.outcome, end.exit_code) == (Outcome.KEPT, 0)
    assert {str(body["host"]) for body in stage.journal.bodies("measure.outcome")} == {"gpu1"}
    assert other.starts == 0


def test_a_promise_that_was_not_kept_is_not_good_enough_to_go_on_with() -> None:
    stage = Stage()
    carried_out(stage, plan(SAME, GAIN))
    verdict = stage.journal.bodies("verdict")[-1]
    assert (verdict["verdict"], verdict["decision"]) == ("unchanged", "revert")
    stage.journal.lines = [one for one in stage.journal.lines if one.kind not in ("step.closed", "run.closed")]

    assert open_run(stage.journal.events("R1")).good == {}


def dies_at(number: int, text: str) -> Stage:
    stage = Stage()
    stage.world.before = die_before(stage.world, lambda _, seen: seen >= number)
    with contextlib.suppress(Killed):
        carried_out(stage, text)
    stage.world.before = lambda name: None
    return stage


EVERY = 8  # calls between two deaths; each of the four stories has its own


@pytest.mark.parametrize(
    ("text", "acted", "first"),
    [(plan(BETTER, GAIN), True, 1), (plan(BETTER, GAIN), False, 3), (plan(SAME, GAIN), True, 5),
     (plan(SAME, GAIN), False, 7)],
    ids=["kept, the dead-man first", "kept, recover first", "back, the dead-man first", "back, recover first"],
)  # fmt: skip
def test_wherever_the_controller_dies_in_a_trial_the_run_gets_an_end_that_is_true(
    text: str, acted: bool, first: int
) -> None:
    whole = Stage()
    carried_out(whole, text)
    for number in range(first, len(whole.world.trace) + 1, EVERY):
        stage = dies_at(number, text)
        if acted:
            stage.host.lease_runs_out()
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        ending = settle(stage)

        where = (number, whole.world.trace[number - 1], ending)
        if ending.outcome is Outcome.KEPT:
            assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept", where
            assert stage.host.process is not None, where
            assert stage.host.process.argv[-1] == "8", where
        else:
            assert ending.outcome in (Outcome.REVERTED, Outcome.ABORTED), where
            assert stage.serving_as_before(), where
        assert exit_code(ending) == 0, where
        assert stage.host.keeper.armed == {}, where
