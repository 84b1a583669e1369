"""Load that was less than asked for, by the sender's own doing, proves nothing about the service."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.judging.test_verdict import failing, level, phase

from changectl.core.judging.baseline import advice, unusable
from changectl.core.judging.gates import unequal_work
from changectl.core.judging.judgement import Verdict
from changectl.core.judging.verdict import judge_quick
from changectl.core.measuring.measured import LevelMeasurement, Measurement

NOT_AS_ASKED: list[tuple[dict[str, Any], str, str]] = [
    ({"planned_rate": 6.0, "sent_rate": 5.69}, "rate_not_reached", "it sent 5.69 rps of 6 rps"),
    (
        {"streams": 8, "in_flight_mean": 5.3, "in_flight_most": 8},
        "streams_not_reached",
        "5.3 requests were under way at a time, of 8 streams",
    ),
    (
        {"streams": 8, "in_flight_mean": None, "in_flight_most": 3},
        "streams_not_reached",
        "3 requests were under way at a time, of 8 streams",
    ),
    ({"streams": 8, "asked_seconds": 20.0, "window": 18.9}, "level_cut_short", "it sent for 18.9s instead of 20s"),
    (
        {"streams": 8, "asked_seconds": 20.0, "ended": 8.0, "window": 7.5},
        "level_cut_short",
        "it sent for 7.5s instead of 8s",
    ),
]
AS_ASKED: list[dict[str, Any]] = [
    {"planned_rate": 6.0, "sent_rate": 5.71},
    {"planned_rate": 6.0, "sent_rate": 6.2},
    {"streams": 8, "in_flight_mean": 5.4, "in_flight_most": 8},
    {"streams": 8, "in_flight_mean": None, "in_flight_most": None},
    {"streams": 8, "asked_seconds": 20.0, "window": 19.1},
    {"streams": 8, "asked_seconds": 20.0, "window": 140.0},
    {"streams": 8, "asked_seconds": 20.0, "ended": 8.0, "window": 8.4},  # precise before its time
    {
        "planned_rate": 6.0,
        "sent_rate": 6.0,
        "asked_seconds": 20.0,
        "window": 15.0,
    },  # nobody came at the end
]


@pytest.mark.parametrize(("given", "code", "text"), NOT_AS_ASKED)
@pytest.mark.parametrize("side", ["before", "after"])
def test_load_that_is_less_than_asked_for_makes_the_comparison_invalid(
    given: dict[str, Any], code: str, text: str, side: str
) -> None:
    sound = level(**{**given, "sent_rate": given.get("planned_rate"), "in_flight_mean": 8.0, "window": 20.0})
    pair = [phase(level(**given)), phase(sound)]
    judgement = judge_quick(*(pair if side == "before" else reversed(pair)))

    assert judgement.verdict is Verdict.INVALID
    (reason,) = judgement.reasons
    assert reason.code == code
    assert str(reason) == f"the load generator did not keep up {side}, at normal: {text}"


@pytest.mark.parametrize(("given", "code", "text"), NOT_AS_ASKED)
def test_such_a_baseline_is_not_worth_a_restart(given: dict[str, Any], code: str, text: str) -> None:
    (reason,) = unusable(phase(level(**given)))

    assert (reason.code, str(reason)) == (f"baseline_{code}", f"the load generator did not keep up at normal: {text}")
    assert advice([reason])


@pytest.mark.parametrize("given", AS_ASKED)
def test_load_as_asked_for_is_compared(given: dict[str, Any]) -> None:
    assert judge_quick(phase(level(**given)), phase(level(**given))).verdict is Verdict.NO_GROSS_HARM
    assert unusable(phase(level(**given))) == []


def test_streams_that_pause_because_the_service_fails_are_the_services_doing() -> None:
    idle = {"streams": 8, "in_flight_mean": 2.0, "in_flight_most": 3}

    judgement = judge_quick(phase(level(streams=8, in_flight_mean=8.0)), phase(failing(30, **idle)))

    assert judgement.verdict is Verdict.REGRESSED


def test_a_request_that_the_senders_host_had_no_room_for_is_no_failure_of_the_service() -> None:
    judgement = judge_quick(phase(), phase(failing(1, "client_limit")))

    assert judgement.verdict is Verdict.INVALID
    assert str(judgement.reasons[0]).endswith("at normal: its own host had no room for 1 requests")
    assert [reason.code for reason in unusable(phase(failing(1, "client_limit")))] == ["baseline_sender_full"]


@pytest.mark.parametrize(
    "other", [{"streams": 4}, {"planned_rate": 6.0}, {"asked_seconds": 30.0}, {"streams": None, "planned_rate": 8.0}]
)
def test_another_load_under_the_same_name_is_another_level(other: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"streams": 8, "asked_seconds": 10.0, "in_flight_mean": 8.0, "window": 30.0}

    judgement = judge_quick(phase(level(**asked)), phase(level(**{**asked, **other})))

    assert judgement.verdict is Verdict.INVALID
    assert "levels_differ" in [reason.code for reason in judgement.reasons]


def test_records_of_before_these_figures_were_kept_are_still_read_and_judged() -> None:
    document = phase().to_json()
    new = LevelMeasurement(name="x", n=0, ok=0)
    for written in document["levels"]:
        for name in ("streams", "asked_seconds", "planned_rate", "sent_rate", "in_flight_mean", "in_flight_most"):
            assert getattr(new, name) is None
            del written[name]
        del written["goodput"]
    old = Measurement.from_json(document)

    assert old == phase()
    assert judge_quick(old, old).verdict is Verdict.NO_GROSS_HARM


@pytest.mark.parametrize(("lost", "told"), [((0, 3), True), ((0, 2), False), ((3, 3), False), ((4, 0), True)])
def test_turns_that_only_one_side_could_be_asked_are_unequal_work(lost: tuple[int, int], *, told: bool) -> None:
    before, after = (level(not_sent=number) for number in lost)

    reason = unequal_work(before, after)

    assert (reason is not None) is told
    if reason:
        assert reason.endswith(f"at normal: {lost[0]} before, {lost[1]} after")
