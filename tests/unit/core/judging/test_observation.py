"""Live traffic before and after a change: gross harm, none of it seen, or nothing to tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from changectl.core.judging.conditions import Difference
from changectl.core.judging.judgement import HardEvent, Judgement, Verdict
from changectl.core.judging.observation import Observation, judge_observed, too_little
from changectl.core.measuring.metrics import Guard, parse_expectation, parse_guard
from changectl.core.telemetry.engine_page import Reading
from changectl.core.telemetry.engine_window import EngineWindow

EDGES = (0.1, 0.2, 0.5, 1.0)


def seen(
    n: int = 600,
    failed: int = 0,
    *,
    ttft: float = 0.15,
    tokens: float = 50,
    seconds: float = 300.0,
    timed: bool = True,
    more: Mapping[str, float] | None = None,
    facts: Mapping[str, float | None] | None = None,
) -> Observation:
    good = n - failed
    gains = {name: Reading(float(value)) for name, value in (
        ("requests_ok", good), ("requests_failed", failed),
        ("prompt_tokens", 100 * n), ("generated_tokens", tokens * n),
    )}  # fmt: skip
    gains |= {name: Reading(value) for name, value in (more or {}).items()}
    if timed:
        buckets = (*((edge, float(good if ttft <= edge else 0)) for edge in EDGES), (math.inf, float(good)))
        gains |= {name: Reading(good * ttft, good, buckets) for name in ("ttft", "tpot", "e2e_time")}
    return Observation(seconds, EngineWindow(gains), facts or {})


def judged(before: Observation, after: Observation, *guards: Guard) -> Judgement:
    return judge_observed(before, after, guards=guards)


def test_what_stays_alike_shows_no_gross_harm_and_never_more() -> None:
    assert judged(seen(), seen()).verdict is Verdict.NO_GROSS_HARM
    assert judged(seen(), seen(ttft=0.05)).verdict is Verdict.NO_GROSS_HARM


@pytest.mark.parametrize(
    ("after", "told"),
    [(seen(failed=60), "failures at live"), (seen(ttft=0.3), "ttft_user_mean at live: 150ms -> 300ms")],
)
def test_gross_harm_is_regressed(after: Observation, told: str) -> None:
    judgement = judged(seen(), after)
    assert judgement.verdict is Verdict.REGRESSED
    assert told in "; ".join(map(str, judgement.reasons))


def test_a_restart_is_harm_however_few_requests_came() -> None:
    after = replace(seen(n=2), events=(HardEvent("process_restarted", "the service was restarted"),))
    assert judged(seen(), after).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("after", [seen(n=5), seen(n=0), Observation(300.0, EngineWindow())])
def test_no_data_is_never_a_pass(after: Observation) -> None:
    assert judged(seen(), after).verdict is Verdict.INCONCLUSIVE
    assert judged(after, seen()).verdict is Verdict.INCONCLUSIVE
    assert too_little(after, "before the change")


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (seen(n=1200, ttft=0.4), "2 requests a second came before and 4 after"),
        (seen(tokens=80, ttft=0.4), "a request had +60% output tokens"),
        (seen(timed=False), "the engine times nothing that is guarded"),
    ],
)
def test_times_of_unlike_traffic_are_not_compared_and_nothing_follows_from_failures_alone(
    after: Observation, told: str
) -> None:
    judgement = judged(seen(), after)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert told in "; ".join(map(str, judgement.reasons))


@pytest.mark.parametrize(
    ("limit", "ttft", "verdict"),
    [
        ("<= 200ms", 0.3, Verdict.REGRESSED),  # beyond the edge of 200 ms, for sure
        ("<= 500ms", 0.3, Verdict.NO_GROSS_HARM),
        ("<= 300ms", 0.4, Verdict.REGRESSED),  # nobody can tell of the limit, so that the default rule holds
        ("<= 190ms", 0.16, Verdict.INCONCLUSIVE),  # in the bucket that holds the limit, and no gross harm
    ],
)
def test_a_limit_on_a_percentile_is_broken_only_where_the_histogram_shows_it(
    limit: str, ttft: float, verdict: Verdict
) -> None:
    after = seen(ttft=ttft)
    calm = EngineWindow({**after.window.gains, **{name: seen().window.gains[name] for name in ("tpot", "e2e_time")}})
    assert judged(seen(), replace(after, window=calm), parse_guard("ttft_user_p95", limit)).verdict is verdict


def test_one_failure_of_a_few_requests_is_no_proof_of_a_share() -> None:
    limit = parse_guard("failures", "<= 1%")
    assert judged(seen(n=30), seen(n=30, failed=1), limit).verdict is Verdict.INCONCLUSIVE
    assert judged(seen(), seen(failed=1), limit).verdict is Verdict.NO_GROSS_HARM
    assert judged(seen(), seen(failed=60), limit).verdict is Verdict.REGRESSED


def test_an_expected_gain_is_shown_and_not_judged() -> None:
    judgement = judge_observed(seen(), seen(ttft=0.05), expect=[parse_expectation("ttft_user", "-20%")])
    assert [row.state for row in judgement.rows if row.limit.startswith("expected")] == ["not judged"]


def test_more_than_one_per_cent_that_failed_is_flagged_before_and_after() -> None:
    judgement = judged(seen(failed=12), seen(failed=12))
    assert [flag.text for flag in judgement.flags] == [
        "2% of 600 live requests failed before the change", "2% of 600 live requests failed after the change",
    ]  # fmt: skip


def test_a_limit_that_live_traffic_cannot_be_held_against_leaves_it_open_and_the_default_rule_in_force() -> None:
    limit = parse_guard("ttft_user_p95", "<= 300ms")

    def without_edges(seen: Observation) -> Observation:
        gains = {name: replace(one, buckets=()) for name, one in seen.window.gains.items()}
        return replace(seen, window=EngineWindow(gains))

    assert judged(seen(), without_edges(seen()), limit).verdict is Verdict.INCONCLUSIVE
    assert judged(seen(), without_edges(seen(ttft=5.0)), limit).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(
    ("now", "verdict"), [(1000.0, Verdict.REGRESSED), (60000.0, Verdict.NO_GROSS_HARM), (None, Verdict.INCONCLUSIVE)]
)
def test_a_limit_on_what_the_engine_can_hold_is_held_against_what_it_told(now: float | None, verdict: Verdict) -> None:
    before, after = seen(facts={"kv_capacity": 100000.0}), seen(facts={"kv_capacity": now})
    assert judged(before, after, parse_guard("kv_capacity", ">= 50000 tokens")).verdict is verdict


def test_of_the_limits_of_single_levels_the_loosest_holds_since_live_traffic_has_no_levels() -> None:
    low, peak = parse_guard("ttft_user_p95 at low", "<= 100ms"), parse_guard("ttft_user_p95 at peak", "<= 500ms")
    assert judged(seen(), seen(), low, peak).verdict is Verdict.NO_GROSS_HARM
    assert judged(seen(), seen(), low).verdict is Verdict.REGRESSED
    assert judged(seen(), seen(), peak, parse_guard("ttft_user_p95", "<= 100ms")).verdict is Verdict.REGRESSED


def test_what_the_server_refuses_is_a_failure_though_the_engine_never_saw_it() -> None:
    judgement = judged(seen(more={"http_errors": 0.0}), seen(more={"http_errors": 120.0}))
    assert judgement.verdict is Verdict.REGRESSED
    assert seen(failed=6, more={"http_errors": 6.0}).ended == seen(failed=6).ended, "counted once"


def test_many_more_requests_that_clients_give_up_are_harm_and_a_few_are_none() -> None:
    def given_up(count: float) -> Observation:
        return seen(more={"requests_aborted": count})

    judgement = judged(given_up(6), given_up(120))
    assert judgement.verdict is Verdict.REGRESSED
    assert "given_up at live" in "; ".join(map(str, judgement.reasons))
    assert judged(given_up(6), given_up(12)).verdict is Verdict.NO_GROSS_HARM


def test_under_other_conditions_nothing_is_judged() -> None:
    other = judge_observed(seen(), seen(), undeclared=[Difference("kernel", "6.1", "6.8")])
    unread = judge_observed(seen(), seen(), unread=["model"])
    assert [(one.verdict, one.reasons[0].code) for one in (other, unread)] == [
        (Verdict.INVALID, "conditions_differ"), (Verdict.INVALID, "conditions_unknown"),
    ]  # fmt: skip
    gone = replace(seen(), events=(HardEvent("process_gone", "the service's process ended"),))
    assert judge_observed(seen(), gone, unread=["settings"]).verdict is Verdict.REGRESSED
    assert judge_observed(seen(), seen(), unread=["engine_version"]).verdict is Verdict.NO_GROSS_HARM


def test_a_change_that_may_change_answers_is_never_shown_to_do_no_harm_by_live_traffic() -> None:
    judgement = judge_observed(seen(), seen(), changes_answers=True)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "live traffic does not show answers" in judgement.reasons[0].text
