"""Live traffic before and after a change: gross harm, none of it seen, or nothing to tell."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from changectl.core.engine_page import Reading
from changectl.core.engine_window import EngineWindow
from changectl.core.judgement import HardEvent, Judgement, Verdict
from changectl.core.metrics import Guard, parse_expectation, parse_guard
from changectl.core.observation import Observation, judge_observed, too_little

EDGES = (0.1, 0.2, 0.5, 1.0)


def seen(
    n: int = 600, failed: int = 0, *, ttft: float = 0.15, tokens: float = 50, seconds: float = 300.0, timed: bool = True
) -> Observation:
    good = n - failed
    gains = {name: Reading(float(value)) for name, value in (
        ("requests_ok", good), ("requests_failed", failed),
        ("prompt_tokens", 100 * n), ("generated_tokens", tokens * n),
    )}  # fmt: skip
    if timed:
        buckets = (*((edge, float(good if ttft <= edge else 0)) for edge in EDGES), (math.inf, float(good)))
        gains |= {name: Reading(good * ttft, good, buckets) for name in ("ttft", "tpot", "e2e_time")}
    return Observation(seconds, EngineWindow(gains))


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
        ("<= 300ms", 0.4, Verdict.NO_GROSS_HARM),  # in the bucket that holds the limit: nobody can tell
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
