"""What is harm while a change is watched: live shares beyond their limits, memory; and what could not be seen."""

from __future__ import annotations

import pytest

from changectl.core.judging.watch import Harm, Live, ShareLimit, Watched, limits
from changectl.core.lifecycle import FOR_CAUSE, WATCH_FAILURES, WATCH_LATENCY, WATCH_PREEMPTIONS, Ending, Outcome
from changectl.core.measuring.metrics import parse_guard
from changectl.core.measuring.proportions import Count

NOTHING = Live()
SLO = [parse_guard("ttft_user_p95", "<= 800ms"), parse_guard("failures", "<= 2%"), parse_guard("rps_ok", ">= 3 rps")]


def by_name(found: list[ShareLimit]) -> dict[str, float]:
    return {one.name: round(one.share, 4) for one in found}


def seen(watched: Watched, name: str, *counts: tuple[int, int]) -> Harm | None:
    """Looks with so many failed of so many more requests each; the harm that the last one found."""
    failed = total = 0
    harm = watched.see(0.0, Live(counts={name: Count(failed, total)}))
    for place, (more_failed, more) in enumerate(counts, 1):
        failed, total = failed + more_failed, total + more
        harm = watched.see(5.0 * place, Live(counts={name: Count(failed, total)}))
    return harm


def watch(*found: ShareLimit) -> Watched:
    return Watched(1800.0, found, None)


def test_shares_are_held_against_the_services_own_limits() -> None:
    assert by_name(limits(SLO, NOTHING)) == {"failures": 0.02, "ttft_user_p95": 0.05}
    assert by_name(limits([], NOTHING)) == {"failures": 0.01}


def test_a_limit_is_never_less_than_what_the_saved_configuration_had() -> None:
    before = Live(counts={"failures": Count(50, 1000), "ttft_user_p95": Count(0, 1000), "preemptions": Count(0, 1000)})
    found = by_name(limits(SLO, before))
    assert 0.05 < found["failures"] < 0.08
    assert found["ttft_user_p95"] == 0.05
    assert 0.05 < found["preemptions"] < 0.06


def test_a_few_requests_before_the_change_do_not_make_the_limit_wide() -> None:
    assert by_name(limits([], Live(counts={"failures": Count(0, 5)}))) == {"failures": 0.01}


def test_a_limit_of_no_failure_at_all_can_be_held() -> None:
    (failures,) = limits([parse_guard("failures", "<= 0%")], NOTHING)
    assert seen(watch(failures), "failures", *[(0, 50)] * 20) is None
    assert seen(watch(failures), "failures", *[(10, 50)] * 6)


@pytest.mark.parametrize(("failed", "most"), [(3, 0.07), (1, 0.01)])
def test_of_a_few_requests_only_what_is_proven_of_their_failures_counts(failed: int, most: float) -> None:
    assert by_name(limits([], Live(counts={"failures": Count(failed, 8)})))["failures"] <= most


def test_that_the_share_before_the_change_was_not_known_is_said() -> None:
    told = "what was usual before the change, of failures (8 requests)"
    for requests in (8, 1000):
        watched = watch(*limits([], Live(counts={"failures": Count(0, requests)})))
        seen(watched, "failures", *[(0, 50)] * 10)
        assert (told in watched.unwatched()) is (requests == 8)


@pytest.mark.parametrize(("looks", "too_few"), [(4, True), (5, False)])
def test_a_share_that_too_few_looks_cannot_show_to_be_harm_is_said_and_no_reason_to_keep(
    looks: int, too_few: bool
) -> None:
    good, bad = watch(*limits([], NOTHING)), watch(*limits([], NOTHING))
    seen(good, "failures", *[(0, 10)] * looks)
    seen(bad, "failures", *[(1, 10)] * looks)
    told = "failures (requests came in fewer than 5 looks)"
    assert (told in good.unwatched()) is too_few
    assert good.too_short() is None
    harm = bad.too_short()
    assert (harm is not None) is too_few
    if harm is not None:
        assert harm.reason == WATCH_FAILURES
        assert "write a longer `watch`" in harm.text


def test_of_several_levels_limits_the_loosest_counts_since_live_load_has_no_levels() -> None:
    slo = [parse_guard("ttft_user_p95 at peak", "<= 2s"), parse_guard("ttft_user_p95 at low", "<= 300ms")]
    (failures, slow) = limits(slo, NOTHING)
    assert (failures.name, slow.name) == ("failures", "ttft_user_p95")
    assert "<= 2s" in slow.words


@pytest.mark.parametrize(
    ("name", "reason", "told"),
    [
        ("failures", WATCH_FAILURES, "live requests failed; up to 2% would be no harm"),
        ("ttft_user_p95", WATCH_LATENCY, "took longer than ttft_user_p95 <= 800ms allows; up to 5%"),
        ("preemptions", WATCH_PREEMPTIONS, "were preempted"),
        ("given_up", WATCH_FAILURES, "were given up by their clients"),
    ],
)
def test_a_share_far_beyond_its_limit_is_harm_with_a_reason_of_its_own(name: str, reason: str, told: str) -> None:
    found = limits(SLO, Live(counts=dict.fromkeys(("preemptions", "given_up"), Count(0, 1000))))
    harm = seen(watch(*found), name, *[(10, 20)] * 12)
    assert harm is not None
    assert harm.reason == reason
    assert told in harm.text
    assert Ending(Outcome.REVERTED, reason, "").exit_code == 4
    assert reason in FOR_CAUSE


def test_a_share_within_its_limit_is_none() -> None:
    assert seen(watch(*limits([], NOTHING)), "failures", *[(0, 50)] * 100) is None
    assert seen(watch(*limits(SLO, NOTHING)), "ttft_user_p95", *[(2, 50)] * 100) is None


def test_counters_that_began_anew_are_no_requests() -> None:
    watched = watch(*limits([], NOTHING))
    for place, count in enumerate([Count(0, 1000), Count(900, 950), Count(0, 3), Count(0, 10)]):
        assert watched.see(5.0 * place, Live(counts={"failures": count})) is None
    assert watched.failures == Count(0, 7)


def test_that_counters_fell_while_the_process_lives_is_said() -> None:
    watched = watch(*limits([], NOTHING))
    for place, total in enumerate((100, 5, 100, 6, 100)):
        watched.see(5.0 * place, Live(counts={"failures": Count(0, total)}))
    assert "failures (its counters fell 2 times: what came then is not counted)" in watched.unwatched()

    never_up = watch(*limits([], NOTHING))
    for place, total in enumerate((30, 20, 10)):
        never_up.see(5.0 * place, Live(counts={"failures": Count(0, total)}))
    assert not any("does not count it" in text for text in never_up.unwatched())


def test_more_than_one_per_cent_failed_is_flagged_also_where_it_is_no_harm() -> None:
    watched = watch(*limits([parse_guard("failures", "<= 10%")], NOTHING))
    assert seen(watched, "failures", *[(1, 40)] * 10) is None
    (flag,) = watched.flags()
    assert flag.code == "failures_above_1_percent"
    assert flag.text == "2.5% of 400 live requests failed while it was watched"
    assert watch().flags() == []


def test_what_could_not_be_seen_is_said() -> None:
    watched = watch(*limits(SLO, NOTHING))
    watched.see(0.0, Live())
    told = watched.unwatched()
    assert told[0] == "failures, ttft_user_p95 (the engine does not count it)"
    assert told[1].startswith("memory")
    assert watched.nothing_but_answers

    idle = watch(*limits([], NOTHING))
    seen(idle, "failures", (0, 0), (0, 0))
    assert "failures (no request came)" in idle.unwatched()
    assert idle.nothing_but_answers


def test_memory_that_is_seen_is_something() -> None:
    watched = Watched(100.0, (), None)
    for second in range(100):
        assert watched.see(float(second), Live(memory=1e9, left=8e9)) is None
    assert watched.unwatched() == []
    assert not watched.nothing_but_answers
