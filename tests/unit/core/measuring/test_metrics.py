from __future__ import annotations

import pytest

from changectl.core.measuring import metrics
from changectl.core.measuring.metrics import METRICS, parse_expectation, parse_guard, parse_metric


def test_a_reference_may_name_a_statistic_and_a_level() -> None:
    ref = parse_metric("ttft_user_p95 at peak")
    assert (ref.metric.name, ref.statistic, ref.level) == ("ttft_user", "p95", "peak")
    assert str(ref) == "ttft_user_p95 at peak"
    assert str(parse_metric("rps_ok")) == "rps_ok"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ttft_p95", "did you mean `ttft_user_p95`. known: ttft_user"),
        ("tpott", "did you mean `tpot`. known: "),
        ("ttft_user_p96", "known: p50, p95, p99, mean"),
        ("tpot at peek", "did you mean `peak`. known: low, peak"),
        ("rps_ok_p95", "write rps_ok"),
        ("tpot at", "at LEVEL"),
        ("tpot on peak", "at LEVEL"),
        ("tpot at night", "known: low, peak"),
        ("load_time at peak", "leave"),
        ("", "METRIC"),
    ],
)
def test_what_names_no_metric_lists_what_exists(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_metric(text, ("low", "peak"))


@pytest.mark.parametrize(
    ("name", "limit", "word"),
    [
        ("tpot_p95", "<= 5%", "measured in time"),
        ("failures", "<= 5ms", "percent"),
        ("rps_ok", "<= 5 rps", 'write ">= 5 rps"'),
        ("tpot", ">= 5ms", 'write "<= 5ms"'),
    ],
)
def test_a_limit_that_does_not_fit_its_metric_is_refused(name: str, limit: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_guard(name, limit)


def test_an_expectation_for_the_worse_is_refused() -> None:
    assert parse_expectation("rps_ok at peak", "+10%").change == pytest.approx(0.1)
    assert parse_expectation("ttft_user_p95", "-20%").change == pytest.approx(-0.2)
    with pytest.raises(ValueError, match=r"worse .* write -20%"):
        parse_expectation("ttft_user", "+20%")
    with pytest.raises(ValueError, match=r"worse .* write \+20%"):
        parse_expectation("rps_ok", "- 20%")
    with pytest.raises(ValueError, match=r"worse .* write -N%"):
        parse_expectation("ttft_user", "+150%")


def test_margins_follow_the_class_of_service() -> None:
    assert METRICS["tpot"].margin("interactive") == 0.05
    assert METRICS["tpot"].margin("interactive", "p95") == pytest.approx(0.10)
    assert METRICS["tpot"].margin("offline") is None
    assert METRICS["rps_ok"].margin("offline") == 0.05
    assert METRICS["failures"].margin("interactive") == 0.005


def test_every_metric_of_the_catalogue_is_complete() -> None:
    for metric in METRICS.values():
        assert metric.meaning
        assert set(dict(metric.margins)) <= set(metrics.CLASSES)
        for name in (metric.name, *(f"{metric.name}_{statistic}" for statistic in metric.statistics)):
            assert parse_metric(name).metric is metric
