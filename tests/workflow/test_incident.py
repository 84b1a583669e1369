"""A change of a service that is already sick: watched live instead of measured, and with the same way back."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import FakeHost
from tests.workflow.incident_stage import BROKEN, MENDED, NEVER, REASON, crash_looping, ended, mend, while_watched
from tests.workflow.stage import BETTER, SERVICE, WORSE, Stage
from tests.workflow.tempers import is_changed

from changectl.core.errors import ContactLost, InputError, LeftToHost
from changectl.core.history.reading import runs, services
from changectl.core.incident import Incident
from changectl.core.lifecycle import Outcome
from changectl.workflow.revert import revert, what_to_revert

SHORT = Incident(REASON, seconds=4.0, every=2.0)


def test_a_crash_looping_service_is_mended_watched_and_kept_unjudged() -> None:
    stage = crash_looping()
    end = mend(stage)

    assert ended(end) == MENDED
    assert is_changed(stage.host)
    assert "nobody has judged it" in end.last.text
    assert stage.journal.bodies("measure.intent") == []
    assert stage.journal.bodies("verdict") == []
    assert stage.host.keeper.armed == {}
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept"


def test_no_instance_is_said_to_get_a_short_check_where_nothing_is_measured() -> None:
    stage = crash_looping(("gpu1", "gpu2"))
    end = mend(stage)

    assert ended(end) == MENDED
    assert [body["look"] for body in stage.journal.bodies("turn")] == ["live", "live"]
    assert "gpu2: 2 of 2: judged by what is live there" in stage.reporter.notes
    assert not [note for note in stage.reporter.notes if "short check" in note]


def test_the_side_effects_of_an_incident_have_their_order() -> None:
    stage = crash_looping()
    mend(stage)

    assert stage.world.acts() == [
        "records lock",
        "journal run.opened",
        "journal step.started",
        "journal lease.intent",
        "door gpu1 lease",
        "journal lease.outcome",
        "journal contact",
        "journal edit",
        "journal capture.intent",
        "door gpu1 capture",
        "records put_snapshot",
        "records put_blob",
        "journal capture.outcome",
        "journal precheck",
        "journal write.intent",
        "journal arm.intent",
        "play gpu1 apply",
        "journal arm.outcome",
        "journal write.outcome",
        "journal ready.outcome",
        "journal effective.outcome",
        "journal guards.intent",
        "journal guards.outcome",
        "journal disarm.intent",
        "door gpu1 disarm",
        "journal disarm.outcome",
        "journal step.closed",
        "journal tidy.intent",
        "door gpu1 cleanup",
        "journal tidy.outcome",
        "door gpu1 release",
        "journal run.closed",
    ]


def test_it_is_watched_for_two_minutes_with_an_answer_every_five_seconds_and_that_is_shown() -> None:
    stage = crash_looping()
    mend(stage)
    (guards,) = stage.journal.bodies("guards.outcome")

    assert (guards["ok"], guards["seconds"], guards["every"]) == (True, 120.0, 5.0)
    assert 18 <= guards["answers"] <= 25
    shown = [text for text in stage.reporter.waits if "watching it live" in text]
    assert len(shown) > 60
    assert "3 answers, no restart, no failure line" in "\n".join(shown)


def test_how_long_and_how_often_is_the_incidents_own() -> None:
    stage = crash_looping()
    mend(stage, incident=Incident(REASON, seconds=10.0, every=1.0))
    (guards,) = stage.journal.bodies("guards.outcome")
    assert guards["seconds"] == 10.0
    assert 7 <= guards["answers"] <= 10


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (FakeHost.restart, "it was restarted"),
        (FakeHost.stop, "its process ended"),
        (lambda host: host.log.append("GGML_ASSERT(n > 0) failed"), "known failure: GGML_ASSERT(n > 0) failed"),
        (lambda host: setattr(host, "load_seconds", NEVER), "it gave no real answer"),
    ],
    ids=["restarted", "gone", "failure line", "silent"],
)
def test_a_broken_guard_brings_the_saved_state_back(happens: Callable[[FakeHost], None], told: str) -> None:
    stage = crash_looping()
    while_watched(stage, happens)
    end = mend(stage)

    assert ended(end) == BROKEN
    assert stage.unchanged()
    assert told in end.last.text
    assert stage.journal.bodies("guards.outcome")[0]["reason"] == "guard_broken"
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "reverted"


def test_one_lost_answer_proves_nothing() -> None:
    stage = crash_looping()

    def skip_one(host: FakeHost) -> None:
        lost = iter([True])

        def on_call(host: FakeHost, call: str) -> None:
            host.load_seconds = NEVER if call == "probe" and next(lost, False) else 1.0

        host.on_call = on_call

    while_watched(stage, skip_one)
    assert ended(mend(stage)) == MENDED
    asked = stage.world.trace[stage.world.trace.index("journal guards.intent") :].count("door gpu1 probe")
    assert asked == stage.journal.bodies("guards.outcome")[0]["answers"] + 2, "one more, and the last look"


def test_what_dies_between_the_watch_and_the_decision_is_not_kept() -> None:
    stage = crash_looping(("gpu1", "gpu2"))
    stage.world.before = lambda name: (
        stage.hosts["gpu1"].stop() if name == "play gpu2 apply" and stage.hosts["gpu1"].process else None
    )
    end = mend(stage)

    assert ended(end) == (4, Outcome.KEPT_PARTLY, "guard_broken")
    assert "gpu1" in end.last.text
    instances = stage.journal.bodies("step.closed")[0]["instances"]
    assert instances == {"gpu1": "reverted", "gpu2": "kept_unjudged"}
    assert stage.hosts["gpu1"].digests() == stage.before["gpu1"]


def test_ctrl_c_while_it_is_watched_brings_the_saved_state_back() -> None:
    stage = crash_looping()
    while_watched(stage, lambda host: os.kill(os.getpid(), signal.SIGINT))
    end = mend(stage)

    assert ended(end) == (130, Outcome.REVERTED, "interrupted")
    assert stage.unchanged()


def test_contact_lost_while_it_is_watched_leaves_the_dead_man_armed() -> None:
    stage = crash_looping()

    def cut(host: FakeHost) -> None:
        def silent(name: str) -> None:
            if name.startswith(("door", "play")):
                raise ContactLost("gpu1: no route to host")

        stage.world.before = silent

    while_watched(stage, cut)
    with pytest.raises(LeftToHost, match="changectl recover R1"):
        mend(stage)
    assert stage.host.keeper.armed.keys() == {"R1.1"}
    assert stage.journal.bodies("run.closed") == []


def killed_at(number: int) -> Stage:
    """An incident whose controller died right before a port call, counted from 1."""
    stage = crash_looping()
    stage.world.before = die_before(stage.world, lambda _, seen: seen >= number)
    with contextlib.suppress(Killed):
        mend(stage, incident=SHORT)
    stage.world.before = lambda name: None
    return stage


@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_wherever_the_controller_died_the_sick_state_is_back_or_the_change_was_kept_unjudged(acted: bool) -> None:
    whole = crash_looping()
    mend(whole, incident=SHORT)
    for number in range(1, len(whole.world.trace) + 1):
        stage = killed_at(number)
        if acted:
            stage.host.lease_runs_out()
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        ending = settle(stage)

        where = (number, whole.world.trace[number - 1], ending)
        if ending.outcome is Outcome.KEPT_UNJUDGED:
            assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept", where
            assert is_changed(stage.host), where
        else:
            assert ending.outcome in (Outcome.REVERTED, Outcome.ABORTED), where
            assert stage.unchanged(), where
        assert stage.host.keeper.armed == {}, where


def test_a_plan_with_more_steps_is_refused_before_anything_is_opened() -> None:
    stage = crash_looping()
    with pytest.raises(InputError, match="the plan has 2 steps") as caught:
        mend(stage, 6, BETTER)
    assert caught.value.exit_code == 2
    assert stage.world.trace == []


def unjudged(stage: Stage) -> Sequence[str]:
    """What `changectl status` lists as never judged."""
    told = [replace(event, at="2026-01-01T00:00:00+00:00") for event in stage.journal.lines]
    return services(runs(told))[0].kept_unjudged


def test_status_lists_it_until_a_later_run_was_judged_and_kept() -> None:
    stage = crash_looping()
    mend(stage)
    assert unjudged(stage) == ("R1/1",)
    (opened,) = stage.journal.bodies("run.opened")
    assert opened["incident"] == REASON

    stage.apply(WORSE)  # judged, and not kept
    assert unjudged(stage) == ("R1/1",)
    stage.apply(BETTER * 2)
    assert stage.journal.bodies("step.closed")[-1]["outcome"] == "kept"
    assert unjudged(stage) == ()


def test_status_lists_it_until_it_is_taken_back_to_the_sick_state() -> None:
    stage = crash_looping()
    mend(stage)
    order = what_to_revert("R1", stage.journal.events("R1"), "mended otherwise")
    _, ending = revert(order, stage.placed, None, stage.tools)

    assert (ending.outcome, ending.reason) == (Outcome.REVERTED, "reverted")
    assert "did not before the change" in ending.text
    assert stage.unchanged()
    assert unjudged(stage) == ()


def test_a_service_that_may_get_no_load_can_be_mended_since_none_is_sent() -> None:
    stage = crash_looping(service_text=SERVICE.replace("limits: {load_on_live: true}\n", ""))
    assert ended(mend(stage)) == MENDED
