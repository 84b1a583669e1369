"""Whatever fails, wherever: the saved configuration is back, or the record says that a person is needed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.workflow.stage import BETTER, WORSE, Left, Stage

from changectl.core.errors import ChangectlError, ContactLost, HostCallError
from changectl.core.lifecycle import Outcome

KEPT_APPENDS = 26  # of a kept run of one step on one instance
DECIDES = 21  # the intent to have the host record that it is kept; from there on a signal comes too late
CLOSES = 23  # the one that closes the step; then the hosts are tidied, and the run is closed
RECORD_FULL = "the record cannot be written"


def full() -> ChangectlError:
    return ChangectlError(RECORD_FULL, reason="record_failed")


def appends(slots: int) -> list[str]:
    stage = Stage()
    stage.apply(slots)
    return [name for name in stage.world.trace if name.startswith("journal")]


def calls(slots: int) -> int:
    stage = Stage()
    stage.apply(slots)
    return len(stage.world.trace)


def test_the_number_of_appends_is_what_these_tests_count_on() -> None:
    assert len(appends(BETTER)) == KEPT_APPENDS
    assert appends(BETTER)[DECIDES - 1 :] == [
        "journal disarm.intent", "journal disarm.outcome", "journal step.closed",
        "journal tidy.intent", "journal tidy.outcome", "journal run.closed",
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(1, CLOSES + 1))
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "from then on"])
def test_a_record_that_cannot_be_written_leaves_the_saved_configuration_in_force(number: int, for_good: bool) -> None:
    stage, seen = Stage(), 0

    def fail(name: str) -> None:
        nonlocal seen
        seen += name.startswith("journal")
        if name.startswith("journal") and (seen == number or (for_good and seen > number)):
            raise full()

    stage.world.before = fail
    try:
        end = stage.apply(BETTER)
    except ChangectlError:
        pass  # the record itself is what could not be written
    else:
        assert not for_good
        assert end.last.outcome in (Outcome.REVERTED, Outcome.REFUSED)
    assert stage.serving_as_before()
    assert not [body for body in stage.journal.bodies("step.closed") if Outcome(body["outcome"]).in_force]


@pytest.mark.parametrize("intent", ["capture", "write"])
def test_nothing_is_done_whose_intent_cannot_be_committed(intent: str) -> None:
    stage = Stage()
    stage.fail_at(1, full, f"journal {intent}.intent")
    stage.apply(BETTER)
    done = {"capture": "door gpu1 capture", "write": "play gpu1 apply"}[intent]
    assert done not in stage.world.trace


def test_a_kept_change_whose_run_cannot_be_closed_stays_kept_and_the_run_stays_open() -> None:
    stage = Stage()
    stage.fail_at(1, full, "journal run.closed")
    end = stage.apply(BETTER)

    # What is in force is what the exit code says; that the record lacks the run's end is told.
    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    assert "the end of run R1 could not be recorded; once it can: changectl recover R1" in stage.reporter.notes
    assert stage.journal.bodies("step.closed")[0]["outcome"] == "kept"
    assert not stage.journal.bodies("run.closed")
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"


@pytest.mark.parametrize("number", range(1, KEPT_APPENDS + 1))
def test_a_signal_at_any_append_ends_restored_or_came_after_the_decision(number: int) -> None:
    stage, seen = Stage(), 0

    def interrupt(name: str) -> None:
        nonlocal seen
        seen += name.startswith("journal")
        if name.startswith("journal") and seen == number:
            os.kill(os.getpid(), signal.SIGTERM)

    stage.world.before = interrupt
    end = stage.apply(BETTER)

    if number >= DECIDES:
        assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    else:
        assert (end.exit_code, end.last.reason) == (130, "interrupted")
        assert stage.serving_as_before()
    assert stage.journal.bodies("run.closed")[0]["exit_code"] == end.exit_code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_a_run_and_its_former_handler_comes_back(number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    stage = Stage()
    stage.world.before = lambda name: os.kill(os.getpid(), number) if name == "journal precheck" else None

    assert stage.apply(BETTER).exit_code == 130
    assert signal.getsignal(number) is handler


def test_signals_in_quick_succession_do_not_stop_the_way_back() -> None:
    stage = Stage()
    ways = ("journal restore.intent", "play gpu1 restore")  # a hundredth of a second apart
    stage.world.before = lambda name: os.kill(os.getpid(), signal.SIGINT) if name in ways else None
    end = stage.apply(WORSE)

    assert end.last.outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_a_signal_while_nothing_was_touched_leaves_everything_alone() -> None:
    stage = Stage()
    stage.world.before = lambda name: os.kill(os.getpid(), signal.SIGINT) if name == "door gpu1 inspect" else None
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (130, Outcome.ABORTED)
    assert not [name for name in stage.world.trace if name.startswith("play")]


def test_a_closed_terminal_does_not_change_what_becomes_of_the_service() -> None:
    stage = Stage()

    def deaf(name: str) -> None:
        if name.startswith("reporter"):
            raise BrokenPipeError

    stage.world.before = deaf
    assert stage.apply(BETTER).exit_code == 0
    assert stage.apply(WORSE).exit_code == 4
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"


def at_rest(stage: Stage, code: int | None) -> bool:
    """The invariant: saved bytes and a process on them; or a record that asks for a person; or kept with a verdict."""
    closed = [Outcome(body["outcome"]) for body in stage.journal.bodies("step.closed")]
    if closed and closed[-1].in_force:
        verdicts = [body["verdict"] for body in stage.journal.bodies("verdict")]
        return verdicts[-1:] == ["no_gross_harm"]
    if closed and closed[-1] in (Outcome.REVERT_FAILED, Outcome.REVERT_UNVERIFIED):
        return code == 6
    return stage.serving_as_before()


def test_an_error_nobody_expected_at_any_call_ends_in_the_saved_configuration() -> None:
    for number in range(1, calls(WORSE) + 1):
        stage = Stage()
        stage.fail_at(number, lambda: RuntimeError("nobody expected this"))
        code: int | None = None
        try:
            code = stage.apply(WORSE).exit_code
        except RuntimeError:
            assert stage.world.trace[number - 1].startswith(("records lock", "journal"))
        assert at_rest(stage, code), (number, stage.world.trace[number - 1])
        where = stage.world.trace[number - 1]
        if where.startswith("play") and where.endswith("apply"):
            assert (code, stage.journal.bodies("step.closed")[0]["reason"]) == (1, "unexpected_error")


ERRORS: dict[str, Callable[[], BaseException]] = {
    "host": lambda: HostCallError("the host did not do it", reason="io_error"),
    "contact": lambda: ContactLost("gone"),
    "record": full,
    "unexpected": lambda: ValueError("nobody expected this"),
    "memory": MemoryError,
}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=st.sampled_from([("gpu1",), ("gpu1", "gpu2")]),
    slots=st.sampled_from([(BETTER,), (WORSE,), (BETTER, WORSE)]),
    faults=st.dictionaries(st.integers(1, 260), st.sampled_from(sorted(ERRORS)), min_size=1, max_size=3),
)
def test_any_few_faults_anywhere_never_leave_an_unjudged_configuration(
    names: tuple[str, ...], slots: tuple[int, ...], faults: dict[int, str]
) -> None:
    stage, seen = Stage(names), 0

    def fail(name: str) -> None:
        nonlocal seen
        seen += 1
        if seen in faults:
            raise ERRORS[faults[seen]]()

    stage.world.before = fail
    code: int | None = None
    with contextlib.suppress(ChangectlError, ValueError, MemoryError):  # the record or the lock failed: no code then
        code = stage.apply(*slots).exit_code
    outcomes = [Outcome(body["outcome"]) for body in stage.journal.bodies("step.closed")]
    verdicts = [body["verdict"] for body in stage.journal.bodies("verdict")]
    if any(outcome in (Outcome.REVERT_FAILED, Outcome.REVERT_UNVERIFIED) for outcome in outcomes):
        assert code in (6, None)
    elif any(outcome.in_part for outcome in outcomes):
        assert "no_gross_harm" in verdicts
    elif code is None and {"journal restore.intent", "journal disarm.intent"} & set(stage.world.trace):
        # The record could not say how it ended, or the host was left to its dead-man: the run is open in the record,
        # so nothing new begins before it is settled.
        assert not stage.journal.bodies("run.closed")
    else:
        assert stage.serving_as_before()


def test_a_second_signal_a_while_later_leaves_at_once_and_says_when_the_host_restores_itself() -> None:
    stage = Stage()

    def twice(name: str) -> None:
        if name in ("journal verdict", "play gpu1 restore"):
            stage.world.seconds += 1
            os.kill(os.getpid(), signal.SIGINT)

    stage.world.before = twice
    with pytest.raises(Left, match=r"gpu1: its dead-man restores .* changectl recover R1") as left:
        stage.apply(WORSE)

    assert left.value.exit_code == 9
    assert "R1.1" in stage.host.keeper.armed
    assert not stage.journal.bodies("run.closed")
