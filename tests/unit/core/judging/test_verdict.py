from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.judging.conditions import Difference
from changectl.core.judging.verdict import HardEvent, Judgement, Reason, Verdict, judge_quick
from changectl.core.measuring.measurement import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import parse_expectation, parse_guard

MS = 0.001


def level(name: str = "normal", **changes: object) -> LevelMeasurement:
    """A sound level of 100 requests: ttft 100 ms, tpot 20 ms, e2e 700 ms, 10 answers and 300 tokens a second."""
    figures = {"ttft_user": 100 * MS, "tpot": 20 * MS, "e2e_user": 700 * MS}
    latency = {
        metric: {"p50": value, "p95": value * 1.2, "p99": None, "mean": value * 1.02}
        for metric, value in figures.items()
    }
    values: dict[str, object] = {
        "name": name,
        "n": 100,
        "ok": 100,
        "latency": latency,
        "window": 10.0,
        "rps_ok": 10.0,
        "out_tok_s": 300.0,
        "tokens_in": 800,
        "tokens_out": 3000,
        "finish": {"length": 100},
        "cache_hit": 0.0,
        "lag_p99": 0.0002,
        "per_prompt": {"a": (8.0, 30.0)},
    }
    return LevelMeasurement(**{**values, **changes})


def slower(metric: str, factor: float, base: LevelMeasurement | None = None) -> LevelMeasurement:
    base = base or level()
    scaled = {name: None if value is None else value * factor for name, value in base.latency[metric].items()}
    return dataclasses.replace(base, latency={**base.latency, metric: scaled})


def failing(failed: int, cls: str = "http_5xx", n: int = 100, **changes: object) -> LevelMeasurement:
    failures = {cls: failed} if failed else {}
    return level(**{"n": n, "ok": n - failed, "failures": failures, "finish": {"length": n - failed}, **changes})


def without(metric: str) -> LevelMeasurement:
    base = level()
    return dataclasses.replace(
        base, latency={**base.latency, metric: dict.fromkeys(("p50", "p95", "p99", "mean"))}, missing={metric: base.ok}
    )


def phase(*levels: LevelMeasurement, **changes: object) -> Measurement:
    return Measurement(levels or (level(),), **changes)


def codes(judgement: Judgement) -> list[str]:
    return [reason.code for reason in judgement.reasons]


def state(judgement: Judgement, place: str) -> str:
    return next(row.state for row in judgement.rows if row.place == place)


def test_the_same_twice_is_no_gross_harm_and_never_improved() -> None:
    judgement = judge_quick(phase(), phase())
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    assert {row.state for row in judgement.rows} == {"within"}
    assert judge_quick(phase(), phase(slower("ttft_user", 0.2))).verdict is Verdict.NO_GROSS_HARM


@pytest.mark.parametrize("metric", ["ttft_user", "tpot", "e2e_user"])
def test_a_median_half_again_as_slow_is_regressed(metric: str) -> None:
    judgement = judge_quick(phase(), phase(slower(metric, 1.5000001)))
    assert judgement.verdict is Verdict.REGRESSED
    assert state(judgement, f"{metric}_p50 at normal") == "breach"
    assert judge_quick(phase(), phase(slower(metric, 1.49))).verdict is Verdict.NO_GROSS_HARM


def test_a_difference_below_the_floor_is_no_harm_whatever_its_factor() -> None:
    tiny = slower("tpot", 0.02)  # 0.4 ms
    assert judge_quick(phase(tiny), phase(slower("tpot", 3.0, tiny))).verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(phase(tiny), phase(slower("tpot", 3.6, tiny))).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("metric", ["rps_ok", "out_tok_s"])
def test_a_throughput_half_again_as_low_is_regressed(metric: str) -> None:
    base = level().value(metric)
    assert base is not None
    assert judge_quick(phase(), phase(level(**{metric: base / 1.5}))).verdict is Verdict.REGRESSED
    assert judge_quick(phase(), phase(level(**{metric: base / 1.49}))).verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(phase(), phase(level(**{metric: 0.0}))).verdict is Verdict.REGRESSED


def test_the_limit_on_failures_is_told_in_points() -> None:
    (row,) = [one for one in judge_quick(phase(), phase(failing(4))).rows if one.metric == "failures"]

    assert row.limit == "less than 5 points more, or p at least 0.01"
    assert "points), less than" in str(row)


def test_failures_need_points_and_evidence() -> None:
    assert judge_quick(phase(), phase(failing(12))).verdict is Verdict.REGRESSED
    assert judge_quick(phase(), phase(failing(4))).verdict is Verdict.NO_GROSS_HARM  # fewer than 5 points
    small = level(n=21, ok=21, finish={"length": 21})
    judgement = judge_quick(phase(small), phase(failing(1, n=21)))  # 4.8 points
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    judgement = judge_quick(phase(failing(0, n=40)), phase(failing(3, n=40)))  # 7.5 points, p = 0.12
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    assert "p = 0.12" in next(row.note for row in judgement.rows if row.metric == "failures")


def test_failures_are_pooled_over_levels_too() -> None:
    few = [failing(5, name=name) for name in ("low", "normal", "peak")]  # each alone p = 0.03
    sound = [level(name) for name in ("low", "normal", "peak")]
    judgement = judge_quick(phase(*sound), phase(*few))
    assert judgement.verdict is Verdict.REGRESSED
    assert state(judgement, "failures") == "breach"


def test_shedding_load_to_be_faster_is_regressed() -> None:
    shed = dataclasses.replace(slower("ttft_user", 0.5, failing(30)), rps_ok=12.0)
    judgement = judge_quick(phase(), phase(shed))
    assert judgement.verdict is Verdict.REGRESSED
    assert "error_share" in codes(judgement)


def test_everything_failing_is_regressed_not_inconclusive() -> None:
    unbounded = {metric: {"p50": math.inf, "p95": math.inf, "p99": None, "mean": None} for metric in level().latency}
    dead = failing(100, "late", latency=unbounded, rps_ok=0.0, out_tok_s=0.0, per_prompt={}, finish={}, cache_hit=None)
    judgement = judge_quick(phase(), phase(dead))
    assert judgement.verdict is Verdict.REGRESSED
    assert state(judgement, "ttft_user_p50 at normal") == "breach"
    json.dumps(judgement.to_json(), allow_nan=False)


def test_a_hard_event_needs_no_statistics() -> None:
    event = HardEvent("process_restarted", "the service's process was restarted during level normal")
    judgement = judge_quick(phase(), phase(), hard_events=[event])
    assert judgement.verdict is Verdict.REGRESSED
    assert codes(judgement) == ["process_restarted"]


def test_a_hard_event_during_the_baseline_makes_it_no_baseline() -> None:
    event = HardEvent("process_restarted", "it was restarted", phase="A")
    assert judge_quick(phase(), phase(), hard_events=[event]).verdict is Verdict.INVALID


def test_empty_answers_are_a_hard_event() -> None:
    judgement = judge_quick(phase(), phase(failing(6, "empty")))
    assert judgement.verdict is Verdict.REGRESSED
    assert "empty_answers" in codes(judgement)


def test_a_baseline_that_failed_as_much_leaves_it_open() -> None:
    judgement = judge_quick(phase(failing(30)), phase(failing(30)))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "baseline_error_share" in codes(judgement)


def test_fewer_than_twenty_good_answers_are_inconclusive() -> None:
    few = level(n=19, ok=19, finish={"length": 19})
    for before, after in ((few, level()), (level(), few)):
        judgement = judge_quick(phase(before), phase(after))
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert "too_few" in codes(judgement)


@pytest.mark.parametrize("metric", ["ttft_user", "tpot", "e2e_user"])
@pytest.mark.parametrize("side", ["before", "after", "both"])
def test_a_guarded_figure_without_data_is_inconclusive(metric: str, side: str) -> None:
    before = without(metric) if side != "after" else level()
    after = without(metric) if side != "before" else level()
    assert judge_quick(phase(before), phase(after)).verdict is Verdict.INCONCLUSIVE


def test_data_missing_for_a_tenth_of_the_answers_is_a_gap() -> None:
    judgement = judge_quick(phase(), phase(level(missing={"tpot": 10})))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judge_quick(phase(), phase(level(missing={"tpot": 5}))).verdict is Verdict.NO_GROSS_HARM


def test_a_metric_that_has_no_meaning_for_any_answer_is_no_gap() -> None:
    single = dataclasses.replace(without("tpot"), missing={}, undefined={"tpot": 100})
    judgement = judge_quick(phase(single), phase(single))
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    assert state(judgement, "tpot_p50 at normal") == "not defined"
    assert judge_quick(phase(), phase(single)).verdict is Verdict.INCONCLUSIVE


def test_a_limit_takes_the_place_of_the_factor() -> None:
    worse = slower("tpot", 2.0)  # 20 -> 40 ms; P95 48 ms
    assert judge_quick(phase(), phase(worse)).verdict is Verdict.REGRESSED
    accepted = judge_quick(phase(), phase(worse), accept=[parse_guard("tpot_p95", "<= 50ms", "accept")])
    assert accepted.verdict is Verdict.NO_GROSS_HARM
    assert state(accepted, "tpot_p95 at normal") == "within"
    broken = judge_quick(phase(), phase(worse), slo=[parse_guard("tpot_p95", "<= 45ms")])
    assert broken.verdict is Verdict.REGRESSED
    both = [parse_guard("tpot_p95", "<= 50ms", "accept")], [parse_guard("tpot_p95", "<= 45ms")]
    assert judge_quick(phase(), phase(worse), accept=both[0], slo=both[1]).verdict is Verdict.REGRESSED


def test_a_limit_holds_even_where_the_change_is_small() -> None:
    judgement = judge_quick(phase(), phase(), slo=[parse_guard("ttft_user_p50", "<= 90ms")])
    assert judgement.verdict is Verdict.REGRESSED
    assert "before, too" in judgement.reasons[0].text


def test_a_limit_at_one_level_leaves_the_factor_at_the_others() -> None:
    before = phase(level("normal"), level("peak"))
    guard = [parse_guard("tpot_p95 at peak", "<= 90ms", "accept")]
    worse_peak = phase(level("normal"), slower("tpot", 2.0, level("peak")))
    worse_normal = phase(slower("tpot", 2.0, level("normal")), level("peak"))
    assert judge_quick(before, worse_peak, accept=guard).verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(before, worse_normal, accept=guard).verdict is Verdict.REGRESSED


def test_a_limit_without_a_statistic_covers_the_statistics() -> None:
    worse = slower("tpot", 2.0)
    judgement = judge_quick(phase(), phase(worse), accept=[parse_guard("tpot", "<= 45ms", "accept")])
    assert judgement.verdict is Verdict.REGRESSED  # the P95 is 48 ms
    assert judge_quick(phase(), phase(worse), accept=[parse_guard("tpot", "<= 50ms", "accept")]).verdict is (
        Verdict.NO_GROSS_HARM
    )


def no_p95(base: LevelMeasurement) -> LevelMeasurement:
    latency = {metric: {**figures, "p95": None} for metric, figures in base.latency.items()}
    return dataclasses.replace(base, n=40, ok=40, finish={"length": 40}, latency=latency)


def test_a_limit_on_a_percentile_that_cannot_be_measured_is_inconclusive_unless_the_median_breaks_it() -> None:
    guard = [parse_guard("ttft_user_p95", "<= 150ms")]
    judgement = judge_quick(phase(no_p95(level())), phase(no_p95(level())), slo=guard)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert state(judgement, "ttft_user_p95 at normal") == "not measurable"
    assert "40 requests are too few" in judgement.reasons[0].text
    judgement = judge_quick(phase(no_p95(level())), phase(no_p95(slower("ttft_user", 2))), slo=guard)
    assert judgement.verdict is Verdict.REGRESSED
    plain = judge_quick(phase(no_p95(level())), phase(no_p95(level())), slo=[parse_guard("ttft_user", "<= 150ms")])
    assert plain.verdict is Verdict.NO_GROSS_HARM


@pytest.mark.parametrize("name", ["load_time", "kv_capacity", "ttft_user_p95 at night"])
def test_a_limit_without_data_is_inconclusive(name: str) -> None:
    limit = ">= 100 tokens" if name == "kv_capacity" else "<= 10s"
    assert judge_quick(phase(), phase(), slo=[parse_guard(name, limit)]).verdict is Verdict.INCONCLUSIVE


def test_a_limit_on_the_load_time_is_judged_by_the_phase() -> None:
    guard = [parse_guard("load_time", "<= 10s")]
    quick, long = phase(facts={"load_time": 8.0}), phase(facts={"load_time": 12.0})
    assert judge_quick(quick, quick, slo=guard).verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(quick, long, slo=guard).verdict is Verdict.REGRESSED


def test_a_limit_needs_twenty_good_answers_too() -> None:
    few = level(n=12, ok=12, finish={"length": 12})
    for limit in ("<= 50ms", "<= 500ms"):
        judgement = judge_quick(phase(), phase(few), slo=[parse_guard("ttft_user_p50", limit)])
        assert judgement.verdict is Verdict.INCONCLUSIVE
        assert state(judgement, "ttft_user_p50 at normal") == "not measurable"


def test_a_limit_on_failures_is_held_against_few_requests_as_well() -> None:
    judgement = judge_quick(phase(), phase(failing(2, n=15)), slo=[parse_guard("failures", "<= 5%")])
    assert judgement.verdict is Verdict.REGRESSED


def test_so_few_good_answers_because_most_failed_break_a_limit() -> None:
    bad = dataclasses.replace(failing(90), latency={"ttft_user": {"p50": math.inf}})
    judgement = judge_quick(phase(), phase(bad), slo=[parse_guard("ttft_user_p50", "<= 500ms")])
    assert judgement.verdict is Verdict.REGRESSED
    assert state(judgement, "ttft_user_p50 at normal") == "breach"


def capacity(tokens: float | None) -> Measurement:
    return phase(facts={"kv_capacity": tokens})


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (9000.0, 8000.0, Verdict.NO_GROSS_HARM),
        (9000.0, 6000.0, Verdict.REGRESSED),
        (9000.0, 60000.0, Verdict.NO_GROSS_HARM),
        (9000.0, None, Verdict.INCONCLUSIVE),
        (None, 9000.0, Verdict.NO_GROSS_HARM),
        (None, None, Verdict.NO_GROSS_HARM),
    ],
)
def test_a_context_cache_half_again_as_small_is_regressed(
    before: float | None, after: float | None, verdict: Verdict
) -> None:
    assert judge_quick(capacity(before), capacity(after)).verdict is verdict


def test_whoever_says_how_small_the_cache_may_get_is_believed() -> None:
    accept = [parse_guard("kv_capacity", ">= 4000 tokens", "accept")]
    assert judge_quick(capacity(9000.0), capacity(5000.0), accept=accept).verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(capacity(9000.0), capacity(3000.0), accept=accept).verdict is Verdict.REGRESSED


def test_a_cache_alone_is_no_evidence() -> None:
    few = Measurement((level(n=5, ok=5),), {"kv_capacity": 9000.0})
    assert judge_quick(few, few).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("name", ["settings", "files./etc/x", "model"])
def test_without_settings_files_or_model_nothing_is_compared(name: str) -> None:
    judgement = judge_quick(phase(), phase(), unread_conditions=[name, "kernel"])
    assert judgement.verdict is Verdict.INVALID
    assert codes(judgement) == ["conditions_unknown"]


def test_other_conditions_that_were_not_read_are_named_with_the_verdict() -> None:
    judgement = judge_quick(phase(), phase(), unread_conditions=["environment", "kernel"])
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    assert [flag.text.rpartition(": ")[2] for flag in judgement.flags] == ["environment, kernel"]


def test_what_was_observed_is_shown_and_judged_by_nobody() -> None:
    seen = Reason("swapped_in", "the host read back from swap")
    judgement = judge_quick(phase(), phase(), observations=[seen])
    assert (judgement.verdict, judgement.flags) == (Verdict.NO_GROSS_HARM, (seen,))


def test_an_undeclared_difference_is_invalid_and_named() -> None:
    difference = Difference("model", "sha256:a", "sha256:b")
    judgement = judge_quick(phase(), phase(slower("tpot", 9)), undeclared_differences=[difference])
    assert judgement.verdict is Verdict.INVALID
    assert "model: sha256:a -> sha256:b" in judgement.reasons[0].text


@pytest.mark.parametrize(
    ("after", "code"),
    [
        (phase(invalid=("load generator: exit status 3",)), "measurement_failed"),
        (phase(level("peak")), "levels_differ"),
        (phase(level(cache_hit=0.03)), "cache_state_differs"),
        (phase(level(per_prompt={"a": (9.0, 30.0)})), "unequal_input"),
        (phase(level(lag_p99=0.05)), "generator_late"),
    ],
)
def test_what_is_not_comparable_is_invalid(after: Measurement, code: str) -> None:
    judgement = judge_quick(phase(), after)
    assert judgement.verdict is Verdict.INVALID
    assert codes(judgement) == [code]


@pytest.mark.parametrize(
    "after", [level(per_prompt={"a": (8.0, 24.0)}, out_tok_s=900.0), level(finish={"length": 90, "stop": 10})]
)
def test_unequal_work_leaves_only_what_counts_per_token(after: LevelMeasurement) -> None:
    judgement = judge_quick(phase(), phase(after))
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    assert state(judgement, "e2e_user_p50 at normal") == "unequal work"
    assert state(judgement, "rps_ok at normal") == "unequal work"
    assert state(judgement, "tpot_p50 at normal") == "within"
    assert "unequal_work" in [flag.code for flag in judgement.flags]
    limit = [parse_guard("e2e_user_p95", "<= 10s")]
    assert judge_quick(phase(), phase(after), slo=limit).verdict is Verdict.INCONCLUSIVE


def test_unequal_work_that_leaves_nothing_to_judge_is_invalid() -> None:
    after = level(per_prompt={"a": (8.0, 15.0)})
    assert judge_quick(phase(), phase(after), service_class="offline").verdict is Verdict.INVALID


def test_a_difference_of_two_requests_in_how_answers_end_is_no_difference() -> None:
    small = level(n=50, ok=50, finish={"length": 50}), level(n=50, ok=50, finish={"length": 48, "stop": 2})
    assert state(judge_quick(phase(small[0]), phase(small[1])), "rps_ok at normal") == "within"


def test_offline_services_guard_throughput_and_whole_answers_only() -> None:
    worse = phase(slower("ttft_user", 3))
    assert judge_quick(phase(), worse, service_class="offline").verdict is Verdict.NO_GROSS_HARM
    assert judge_quick(phase(), phase(level(rps_ok=1.0)), service_class="offline").verdict is Verdict.REGRESSED
    with pytest.raises(ValueError, match="interactive, offline"):
        judge_quick(phase(), worse, service_class="batch")


def test_the_expected_gain_is_shown_and_not_judged() -> None:
    judgement = judge_quick(phase(), phase(level(rps_ok=12.0)), expect=[parse_expectation("rps_ok at normal", "+10%")])
    row = judgement.rows[-1]
    assert (row.state, row.limit, row.change) == ("not judged", "expected +10%", pytest.approx(0.2))
    assert judgement.verdict is Verdict.NO_GROSS_HARM


def test_failures_above_one_percent_are_flagged_whatever_the_verdict() -> None:
    judgement = judge_quick(phase(), phase(failing(2)))
    assert judgement.verdict is Verdict.NO_GROSS_HARM
    (flag,) = judgement.flags
    assert flag.code == "failures_above_1_percent"
    assert "2 http_5xx" in flag.text


def test_nothing_measured_is_no_pass() -> None:
    empty = Measurement(())
    assert judge_quick(empty, empty).verdict is Verdict.INCONCLUSIVE
    bare = phase(LevelMeasurement(name="normal", n=0, ok=0))
    assert judge_quick(bare, bare).verdict is Verdict.INCONCLUSIVE


def test_the_same_measurements_bring_the_same_bytes() -> None:
    texts = {json.dumps(judge_quick(phase(), phase(failing(12))).to_json()) for _ in range(20)}
    assert len(texts) == 1


positive = st.floats(0.001, 100, allow_nan=False)


@st.composite
def sound_levels(draw: st.DrawFn) -> LevelMeasurement:
    n = draw(st.integers(60, 500))
    latency = {}
    for metric in ("ttft_user", "tpot", "e2e_user"):
        median = draw(positive)
        latency[metric] = {"p50": median, "p95": median * 1.5, "p99": None, "mean": median}
    return level(
        n=n, ok=n, finish={"stop": n}, latency=latency, rps_ok=draw(positive), out_tok_s=draw(positive), lag_p99=0.0
    )


@given(sound_levels())
def test_identical_records_are_never_harm(measured: LevelMeasurement) -> None:
    assert judge_quick(phase(measured), phase(measured)).verdict is Verdict.NO_GROSS_HARM


@given(sound_levels(), st.sampled_from(["ttft_user", "tpot", "e2e_user"]))
def test_twice_as_slow_beyond_the_floor_is_always_regressed(measured: LevelMeasurement, metric: str) -> None:
    if (measured.value(metric) or 0) > 0.011:
        assert judge_quick(phase(measured), phase(slower(metric, 2, measured))).verdict is Verdict.REGRESSED


@given(
    sound_levels(),
    st.sampled_from(["ttft_user", "tpot", "e2e_user", "rps_ok", "out_tok_s"]),
    st.booleans(),
    st.booleans(),
)
def test_missing_data_never_passes(measured: LevelMeasurement, metric: str, before: bool, after: bool) -> None:
    if metric in measured.latency:
        gone = dataclasses.replace(measured, latency={**measured.latency, metric: {}})
    else:
        gone = dataclasses.replace(measured, **{metric: None})
    verdict = judge_quick(phase(gone if before else measured), phase(gone if after else measured)).verdict
    assert (verdict is Verdict.NO_GROSS_HARM) == (not before and not after)


maybe = st.none() | st.just(math.inf) | st.floats(0, 1e6)


@st.composite
def any_levels(draw: st.DrawFn) -> LevelMeasurement:
    n = draw(st.integers(0, 200))
    ok = draw(st.integers(0, n))
    statistics = st.fixed_dictionaries({"p50": maybe, "p95": maybe, "p99": maybe, "mean": maybe})
    finite = st.none() | st.floats(0, 1e6)
    return level(
        n=n,
        ok=ok,
        failures={"late": n - ok} if n > ok else {},
        finish={"stop": ok} if ok else {},
        latency={metric: draw(statistics) for metric in ("ttft_user", "tpot", "e2e_user")},
        rps_ok=draw(finite),
        out_tok_s=draw(finite),
        cache_hit=draw(st.none() | st.floats(0, 1)),
        lag_p99=draw(finite),
    )


@given(any_levels(), any_levels())
def test_no_figures_whatever_they_are_bring_nan_and_all_survive_storing(
    a: LevelMeasurement, b: LevelMeasurement
) -> None:
    guards = [parse_guard("ttft_user_p95", "<= 800ms"), parse_guard("failures", "<= 1%")]
    expect = [parse_expectation("tpot", "-10%")]
    judgement = judge_quick(phase(a), phase(b), slo=guards, expect=expect)
    text = json.dumps(judgement.to_json(), allow_nan=False)
    assert Judgement.from_json(json.loads(text)) == judgement
    assert "nan" not in "".join(str(row) for row in judgement.rows)
