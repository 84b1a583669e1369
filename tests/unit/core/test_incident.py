"""What an incident may leave out, and what it may not; told from values alone."""

from __future__ import annotations

import pytest

from changectl.core.engine import FailureLine, Readiness
from changectl.core.errors import InputError
from changectl.core.incident import Incident, failure_line, process_stays, sickness, waive
from changectl.core.observed import Observed, Status
from changectl.core.precheck import Check, CheckResult, refuses

SICK = Check("healthy_now", "required").failed("the service is not up: crash_loop")
WELL = Check("healthy_now", "required").passed("it answers")
READS = {"values_agree", "port_owner"}


def required(name: str, state: str) -> CheckResult:
    return CheckResult(name, "required", state, detail="so it is")  # type: ignore[arg-type]


def status(pid: int | None = 7, *, ticks: int = 70, age: float = 60.0, **more: object) -> Status:
    process = None if pid is None else {"pid": pid, "start_ticks": ticks, "started_at": 1000.0}
    return Status.read({"active": "active", "sub": "running", "process": process, "now": 1000.0 + age, **more})


def observed(pid: int | None = 7, ticks: int = 70) -> Observed:
    return Observed.read({"process": None if pid is None else {"pid": pid, "start_ticks": ticks}})


@pytest.mark.parametrize("reason", ["", "   "])
def test_an_incident_needs_a_reason(reason: str) -> None:
    with pytest.raises(InputError, match="--incident needs a reason"):
        Incident(reason)


def test_what_cannot_be_looked_at_because_the_service_is_sick_is_waived_and_says_so() -> None:
    results = [SICK, required("values_agree", "unknown")]
    checked, waived = waive(results, READS, port_is_free=True)

    assert refuses(checked) == []
    assert [one.name for one in waived] == ["healthy_now", "values_agree"]
    assert {one.level for one in waived} == {"advice"}
    assert all(one.detail.endswith("(waived because of the incident)") for one in waived)
    assert waived[0].state == "failed", "what was found stays in the record"


@pytest.mark.parametrize(
    "result",
    [
        required("restorable", "failed"),
        required("restorable", "unknown"),
        required("disk_space", "unknown"),
        required("values_agree", "failed"),
    ],
)
def test_the_way_back_and_what_was_found_wrong_stay_required(result: CheckResult) -> None:
    checked, waived = waive([SICK, result], READS, port_is_free=True)
    assert refuses(checked) == [result]
    assert waived == [checked[0]]


def test_a_healthy_service_gets_nothing_waived() -> None:
    unknown = required("values_agree", "unknown")
    checked, waived = waive([WELL, unknown], READS, port_is_free=True)
    assert (refuses(checked), waived) == ([unknown], [])


@pytest.mark.parametrize("state", ["failed", "unknown"])
@pytest.mark.parametrize("free", [True, False])
def test_a_port_that_another_process_holds_is_never_waived(state: str, free: bool) -> None:
    checked, _ = waive([SICK, required("port_owner", state)], READS, port_is_free=free)
    assert bool(refuses(checked)) is not free


@pytest.mark.parametrize(
    ("seen", "then", "stays"),
    [
        (observed(), status(), True),
        (observed(), status(age=1.0), False),
        (observed(), status(ticks=71), False),
        (observed(), status(pid=None), False),
        (observed(None), status(), False),
        (observed(), status(now=None), False),
    ],
)
def test_a_process_stays_when_it_is_the_same_a_moment_later_and_not_just_started(
    seen: Observed, then: Status, stays: bool
) -> None:
    assert process_stays(seen, then) is stays


def test_sickness_says_plainly_how_the_service_was() -> None:
    silent = Readiness("not_serving", "connection refused")
    down = status(None, active="activating", sub="auto-restart")
    assert sickness(status(), Readiness("ready", "2 tokens"), stays=True) == ""
    assert sickness(status(), silent, stays=True) == "it ran and did not answer: connection refused"
    assert sickness(down, silent, stays=False) == "it did not run: activating, auto-restart"
    assert sickness(status(None, active="failed", sub="failed"), silent, stays=False) == "it did not run: failed"


def test_any_known_failure_line_counts_while_a_service_runs() -> None:
    known = [FailureLine("out of memory", "oom", certain=False), FailureLine("died", "died", generic=True)]
    assert failure_line(["served 1", "  GPU out of memory \n", "died"], known) == "GPU out of memory"
    assert failure_line(["it died"], known) == "it died"
    assert failure_line(["served 1"], known) is None
