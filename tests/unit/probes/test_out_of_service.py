"""The pre-check `out_of_service`: what cannot leave service, or could not come back, is not changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.probes.situations import situation

from changectl import probes
from changectl.core.leaving import Leaving
from changectl.core.precheck import Check, CheckState, reason

LB = "nginx on lb1"


@pytest.mark.parametrize(
    ("leaving", "state", "says"),
    [
        (None, "unknown", "was not looked at"),
        (Leaving(), "not_applicable", "nothing takes it out of service"),
        (Leaving(LB, "gpu1:8000 is the last healthy member", "last_member"), "failed", "the last healthy member"),
        (Leaving(LB, out=True), "passed", "out of service already"),
        (Leaving(LB, noticed=True), "passed", "the plan allows that users notice it"),
        (Leaving(LB), "passed", "the others answer and have room"),
    ],
)
def test_it_says_what_was_found_before_anything_is_switched(
    leaving: Leaving | None, state: CheckState, says: str
) -> None:
    result = probes.load("out_of_service").run(situation(leaving=leaving))

    assert result.state == state
    assert says in result.detail
    assert result.refuses == (state in ("failed", "unknown"))


def test_why_a_change_is_refused_has_a_word_of_its_own_only_where_nothing_else_refuses() -> None:
    last = probes.load("out_of_service").run(situation(leaving=Leaving(LB, "it is the last", "last_member")))
    other = Check("healthy_now", "required").failed("it is down")

    assert reason([last]) == reason([last, replace(last, reason="member_sick")]) == "last_member"
    assert reason([last, other]) == reason([other]) == "precheck_failed"
