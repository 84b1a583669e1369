"""Levels that a service does not get, and percentiles of too few requests, are refused before any host is asked."""

from __future__ import annotations

import pytest
from tests.unit.core.declared.grammar_samples import SERVICE, changed, read_service

from changectl import kinds
from changectl.core.declared import levels, plan
from changectl.core.declared.source import read_yaml
from changectl.core.declared.wording import load_words
from changectl.core.errors import InputError, Problem
from changectl.core.measuring.statistics import MINIMUM

QUIET = changed(SERVICE, "normal: 8 streams}", "normal: 8 streams}, requests: 60")
BUSY = changed(QUIET, "load_on_live: false", "load_on_live: true")
PLAN = """\
version: 1
service: chat
reason: a reason
effort: quick
steps:
  - change: {parameter: {name: max-num-seqs, to: 128}}
    expect: neutral
"""


def check(plan_text: str, service_text: str) -> list[Problem]:
    source, service = read_yaml(plan_text, "plan.yml"), read_service(service_text)
    read = plan.from_source(source, kinds=kinds.specs(), levels=tuple(service.conditions.levels))
    return levels.check(read, source, service)


def measured(plan_text: str, service_text: str) -> tuple[list[str], tuple[str, ...]]:
    read = plan.load(plan_text, "plan.yml", kinds=kinds.specs())
    service = read_service(service_text)
    return list(levels.measured(read, service)), levels.left_out(read, service)


def test_a_service_that_may_be_serving_gets_the_level_low_alone() -> None:
    assert measured(PLAN, QUIET) == (["low"], ("normal",))
    assert measured(PLAN, BUSY) == (["low", "normal"], ())
    assert check(PLAN, QUIET) == []


def test_the_levels_of_the_plan_are_filtered_too() -> None:
    own = PLAN + "conditions: {levels: {low: 2 streams, peak: 9 streams}}\n"

    assert measured(own, QUIET) == (["low"], ("peak",))


@pytest.mark.parametrize(
    ("line", "place", "path"),
    [
        ("expect: {rps_ok at normal: +10%}", "plan.yml:7:14", "steps/1/expect/rps_ok at normal"),
        ("expect: neutral\n    accept: {tpot at normal: <= 1s}", "plan.yml:8:14", "steps/1/accept/tpot at normal"),
    ],
)
def test_a_plan_that_names_a_level_that_is_not_measured_is_told_where_and_what_to_write(
    line: str, place: str, path: str
) -> None:
    text = changed(PLAN, "expect: neutral", line)

    (problem,) = check(text, QUIET)

    assert f"{problem.file}:{problem.line}:{problem.column}" == place
    assert problem.path == path
    assert problem.message.startswith("the level `normal` will not be measured")
    assert "limits: {load_on_live: true}" in problem.hint
    assert check(text, BUSY) == []


def test_a_limit_of_the_service_on_such_a_level_is_a_problem_of_the_service() -> None:
    text = changed(QUIET, "tpot_p95: <= 45ms", "tpot at normal: <= 45ms")

    (problem,) = check(PLAN, text)

    assert (problem.file, problem.line, problem.path) == ("chat.yml", 14, "slo/tpot at normal")


def test_a_limit_of_the_plan_in_its_place_settles_that() -> None:
    text = changed(BUSY, "requests: 60", "requests: 30")
    accept = "expect: neutral\n    accept: {tpot_p95: <= 1s, ttft_user_p95: <= 2s}\nconditions: {requests: 60}"

    assert check(changed(PLAN, "expect: neutral", accept), text) == []


def test_a_service_without_low_is_refused_before_any_host_is_asked() -> None:
    (problem,) = check(PLAN, changed(QUIET, "low: 1 stream, ", ""))

    assert (problem.file, problem.line, problem.path) == ("chat.yml", 15, "conditions/levels")
    assert problem.hint.startswith("add `low: 1 stream`, or write `limits: {load_on_live: true}` in chat.yml")


def test_own_levels_without_low_are_a_problem_of_the_plan() -> None:
    (problem,) = check(PLAN + "conditions: {levels: {peak: 9 streams}}\n", QUIET)

    assert (problem.file, problem.line, problem.path) == ("plan.yml", 8, "conditions/levels")


@pytest.mark.parametrize("requests", [19, 1, 0, -5])
def test_a_plan_with_fewer_requests_than_a_verdict_needs_is_refused(requests: int) -> None:
    with pytest.raises(InputError) as caught:
        check(f"{PLAN}conditions: {{requests: {requests}}}\n", BUSY)

    (problem,) = caught.value.problems
    assert f"{problem.file}:{problem.line}:{problem.column}" == "plan.yml:8:24"
    assert problem.path == "conditions/requests"
    assert problem.message.startswith(f"{requests} requests can never be judged: each level needs 20 good answers")
    assert problem.hint == "write `requests: 60`, or at least 20 and none of them may fail"


def test_a_service_with_fewer_requests_is_refused_too() -> None:
    with pytest.raises(InputError) as caught:
        read_service(changed(BUSY, "requests: 60", "requests: 19"))

    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.path) == ("chat.yml", 15, "conditions/requests")


def test_as_many_requests_as_a_verdict_needs_are_enough() -> None:
    without_p95 = changed(BUSY, "slo: {ttft_user_p95: <= 800ms, tpot_p95: <= 45ms, failures: <= 1%}\n", "")
    assert check(PLAN + "conditions: {requests: 20}\n", without_p95) == []


def test_editors_are_told_the_least_number() -> None:
    schema = plan.json_schema(kinds.specs())["$defs"]["ConditionsOverride"]["properties"]["requests"]
    assert {"minimum": 20, "maximum": 1_000_000, "type": "integer"} in schema["anyOf"]


@pytest.mark.parametrize(("statistic", "needed"), [("p95", MINIMUM["p95"]), ("p99", MINIMUM["p99"])])
def test_a_percentile_of_too_few_requests_is_refused(statistic: str, needed: int) -> None:
    def found(requests: int) -> list[Problem]:
        conditions = (
            f"expect: neutral\n    accept: {{e2e_user_{statistic}: <= 9s}}\nconditions: {{requests: {requests}}}"
        )
        plain = changed(QUIET, "slo: {ttft_user_p95: <= 800ms, tpot_p95: <= 45ms, failures: <= 1%}\n", "")
        return check(changed(PLAN, "expect: neutral", conditions), plain)

    (problem,) = found(needed - 1)

    assert (problem.file, problem.line) == ("plan.yml", 8)
    assert problem.message == (
        f"a {statistic.upper()} needs {needed} requests per level, and plan.yml says `requests: {needed - 1}`"
    )
    assert problem.hint == f"write `requests: {needed}` under `conditions`, or limit `e2e_user_p50`"
    assert found(needed) == []


def test_a_limit_of_the_service_on_a_percentile_is_held_against_the_number_too() -> None:
    found = check(PLAN, changed(QUIET, "requests: 60", "requests: 59"))

    assert [(problem.file, problem.path) for problem in found] == [
        ("chat.yml", "slo/ttft_user_p95"),
        ("chat.yml", "slo/tpot_p95"),
    ]


def test_a_level_that_lasts_for_a_time_may_give_any_percentile() -> None:
    assert check(PLAN, SERVICE) == []


OPEN = changed(BUSY, "low: 1 stream, normal: 8 streams}, requests: 60", "low: 1 stream, peak: 3 rps}, seconds: 30s")
NO_LIMITS = changed(OPEN, "slo: {ttft_user_p95: <= 800ms, tpot_p95: <= 45ms, failures: <= 1%}\n", "")


def sized(plan_text: str, service_text: str) -> dict[str, tuple[int | None, float | None]]:
    read = plan.load(plan_text, "plan.yml", kinds=kinds.specs())
    return {name: (size.count, size.lasts) for name, size in levels.sizes(read, read_service(service_text)).items()}


def test_how_much_of_each_level_is_sent_follows_from_what_is_said() -> None:
    assert sized(PLAN, OPEN) == {"low": (None, 30.0), "peak": (90, 30.0)}
    assert sized(PLAN + "conditions: {seconds: 60s}\n", OPEN) == {"low": (None, 60.0), "peak": (180, 60.0)}
    assert sized(PLAN + "conditions: {requests: 90}\n", OPEN) == {"low": (90, None), "peak": (90, 30.0)}
    assert sized(PLAN, changed(OPEN, ", seconds: 30s", "")) == {"low": (None, 20.0), "peak": (60, 20.0)}


def test_a_time_of_the_plan_takes_the_place_of_a_number_of_its_service() -> None:
    assert sized(PLAN + "conditions: {seconds: 25s}\n", BUSY) == {"low": (None, 25.0), "normal": (None, 25.0)}


def test_a_live_service_gets_its_low_level_alone_also_as_a_rate() -> None:
    text = changed(changed(OPEN, "low: 1 stream", "low: 4 rps"), "load_on_live: true", "load_on_live: false")

    assert measured(PLAN, text) == (["low"], ("peak",))
    assert check(PLAN, text) == []


def test_it_is_said_that_a_level_is_open_and_how_much_that_is() -> None:
    read, service = plan.load(PLAN, "plan.yml", kinds=kinds.specs()), read_service(OPEN)

    assert load_words(read, service) == "at low (1 stream), peak (3 rps, open: 90 requests in 30s)"


def test_an_open_level_too_short_for_any_verdict_is_refused_with_the_time_it_needs() -> None:
    (problem,) = check(PLAN, changed(NO_LIMITS, "seconds: 30s", "seconds: 6s"))

    assert (problem.file, problem.line, problem.path) == ("chat.yml", 14, "conditions/levels/peak")
    assert problem.message == "`peak` gets 18 requests: 3 rps for 6s; each level needs 20 good answers in each phase"
    assert problem.hint == "write `seconds: 20s` under `conditions`, or a higher rate"
    assert check(PLAN, changed(NO_LIMITS, "seconds: 30s", "seconds: 7s")) == []


def test_the_levels_of_the_plan_are_a_problem_of_the_plan() -> None:
    (problem,) = check(PLAN + "conditions: {levels: {low: 1 stream, peak: 0.1 rps}}\n", NO_LIMITS)

    assert (problem.file, problem.line, problem.path) == ("plan.yml", 8, "conditions/levels/peak")


def test_a_percentile_of_too_short_an_open_level_is_refused_with_the_time_it_needs() -> None:
    found = check(PLAN, changed(OPEN, "seconds: 30s", "seconds: 19s"))

    assert [problem.path for problem in found] == ["slo/ttft_user_p95", "slo/tpot_p95"]
    assert found[0].message == "a P95 needs 60 requests per level, and `peak` gets 57 requests: 3 rps for 19s"
    assert found[0].hint == "write `seconds: 20s` under `conditions`, or limit `ttft_user_p50`"
    assert check(PLAN, changed(OPEN, "seconds: 30s", "seconds: 20s")) == []


def test_a_percentile_at_another_level_needs_no_requests_at_this_one() -> None:
    text = changed(NO_LIMITS, "seconds: 30s", "seconds: 10s")
    accept = "expect: neutral\n    accept: {e2e_user_p95 at %s: <= 9s}"

    assert check(changed(PLAN, "expect: neutral", accept % "low"), text) == []
    assert len(check(changed(PLAN, "expect: neutral", accept % "peak"), text)) == 1


@pytest.mark.parametrize(
    ("conditions", "message", "hint"),
    [
        (
            "levels: {low: 10000 rps}, seconds: 110s",
            "`low` gets 1100000 requests: 10000 rps for 110s; a level has at most 1000000",
            "write a shorter time in `seconds`",
        ),
        (
            "levels: {low: 64 streams}, requests: 60",
            "60 requests cannot keep 64 streams busy",
            "write `requests: 128` or more",
        ),
        (
            "levels: {low: 101 streams}, seconds: 2s",
            "the last of 101 streams begins after 2s, and `low` lasts 2s",
            "write at least `seconds: 4s`",
        ),
    ],
)
def test_a_level_that_cannot_be_what_it_says_is_refused(conditions: str, message: str, hint: str) -> None:
    (problem,) = check(f"{PLAN}conditions: {{{conditions}}}\n", NO_LIMITS)

    assert (problem.path, problem.message, problem.hint) == ("conditions/levels/low", message, hint)


def test_goodput_needs_limits_to_be_within_at_every_level_that_it_is_about() -> None:
    wanted = changed(PLAN, "expect: neutral", "expect: {goodput: +5%}")
    at_peak = changed(NO_LIMITS, "conditions:", "slo: {ttft_user at peak: <= 1s}\nconditions:")

    (without,) = check(wanted, NO_LIMITS)
    (elsewhere,) = check(wanted, at_peak)

    assert (without.file, without.line, without.path) == ("plan.yml", 7, "steps/1/expect/goodput")
    assert without.message == "`goodput` counts requests within the latency limits of the service, and `low` has none"
    assert without.hint == "write for example `slo: {ttft_user_p95: <= 800ms}` in chat.yml"
    assert "`low` has none" in elsewhere.message
    assert check(changed(wanted, "goodput:", "goodput at peak:"), at_peak) == []
    assert check(wanted, OPEN) == []


def test_a_limit_on_goodput_in_the_service_needs_them_too() -> None:
    text = changed(NO_LIMITS, "conditions:", "slo: {goodput: '>= 95%'}\nconditions:")

    found = check(PLAN, text)

    assert [(problem.file, problem.path) for problem in found] == [("chat.yml", "slo/goodput")]
