"""The pre-check `caller`: the host that sends the load runs the load generator and gets an answer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.probes.situations import observed, situation

from changectl import probes
from changectl.core.caller import CallerSeen
from changectl.core.measuring.records import Record
from changectl.core.precheck import CheckResult, CheckState


def tried(cls: str = "ok", **more: Any) -> Record:
    return Record(i=0, level="try", stream=0, prompt="p", round=0, t_planned=0, cls=cls, **more)


def seen(**facts: Any) -> CallerSeen:
    return CallerSeen("c1", **{"python": "3.9.2", "address": "10.0.0.9", "tried": tried(t_last=34_000_000), **facts})


def asked(caller: CallerSeen | None, **changed: Any) -> CheckResult:
    return probes.load("caller").run(situation(caller=caller, **changed))


@pytest.mark.parametrize(
    ("caller", "state", "says"),
    [
        (None, "unknown", "not known"),
        (CallerSeen(""), "not_applicable", "no load is sent"),
        (CallerSeen("gpu1", own=True), "not_applicable", "the instance's own host"),
        (seen(), "passed", "answered from there in 34ms (Python 3.9.2)"),
        (seen(tried=tried("empty", t_last=34_000_000)), "passed", "answered from there"),
        (seen(tried=tried("connect_refused")), "failed", "http://127.0.0.1:8080 gives c1 no answer: connect_refused"),
        (seen(tried=tried("http_4xx", error="no such model")), "failed", "http_4xx: no such model"),
        (seen(tried=None), "unknown", "what came of it is not known"),
        (seen(failure="the load generator ended with status 1"), "failed", "ended with status 1"),
        (CallerSeen("c1", trouble="c1: no answer within 15 s"), "failed", "no answer within 15 s"),
        (CallerSeen("c1", trouble="c1: its Python is 3.6; 3.8 or newer is needed"), "failed", "3.8 or newer"),
    ],
)
def test_what_came_of_one_request_decides(caller: CallerSeen | None, state: CheckState, says: str) -> None:
    result = asked(caller)

    assert result.state == state
    assert says in result.detail
    assert result.refuses == (state in ("failed", "unknown"))


def test_where_the_service_does_not_run_nothing_is_told_of_the_caller() -> None:
    down = observed(process=None)

    assert asked(seen(tried=tried("connect_refused")), observed=down).state == "unknown"
    assert asked(CallerSeen("c1", trouble="unreachable"), observed=down).state == "failed"


def test_the_figure_says_who_it_is_and_from_which_address() -> None:
    assert asked(seen()).figure == "c1 (10.0.0.9)"
    assert asked(seen(address=None)).figure == "c1 (address not known)"
