"""Levels that a service does not get, and percentiles of too few requests, are refused before any host is asked."""

from __future__ import annotations

import pytest
from tests.unit.core.grammar_samples import SERVICE, changed, read_service

from changectl import kinds
from changectl.core import levels, plan
from changectl.core.errors import InputError, Problem
from changectl.core.source import read_yaml
from changectl.core.statistics import MINIMUM

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
