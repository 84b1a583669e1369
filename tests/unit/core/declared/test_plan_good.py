from __future__ import annotations

import json

import pytest
from tests.unit.core.declared.grammar_samples import PLAN, SERVICE, changed, read_plan, read_service

from changectl import kinds
from changectl.core.declared import plan
from changectl.core.declared.change import ValueChange
from changectl.core.declared.plan import Plan


def value_change(read: Plan, step: int) -> ValueChange:
    spec = read.steps[step].change.spec
    assert isinstance(spec, ValueChange)
    return spec


@pytest.mark.parametrize(
    ("line", "name", "seconds", "shown"),
    [
        ("", "standard", None, "standard"),
        ("effort: standard\n", "standard", None, "standard"),
        ("effort: thorough\n", "thorough", None, "thorough"),
        ("effort: {time: 45m}\n", "time", 2700, "{time: 45m}"),
    ],
)
def test_an_effort_is_a_name_or_a_time_and_standard_where_it_is_left_out(
    line: str, name: str, seconds: float | None, shown: str
) -> None:
    effort = read_plan(PLAN.replace("effort: quick\n", line)).effort

    assert (effort.name, effort.seconds, str(effort), effort.quick) == (name, seconds, shown, False)


def test_a_full_plan_reads_as_it_is_written() -> None:
    read = read_plan(PLAN)

    assert (read.service, read.reason, read.ticket, str(read.effort)) == (
        "chat",
        "OPS-1234 GPU idle while 12 requests wait",
        "OPS-1234",
        "quick",
    )
    assert read.outage == 1800
    assert (read.conditions.seconds, read.conditions.seed) == (20, 7)
    first, second = read.steps
    assert first.change.describe() == "parameter max-num-seqs: absent -> 128"
    assert str(first.expect) == "rps_ok at peak +10%"
    assert [str(guard) for guard in first.accept] == ["accept tpot_p95 <= 45ms"]
    assert first.checks == ("checks/answers.py",)
    assert first.on_inconclusive == "revert"
    assert second.change.describe() == "environment OMP_NUM_THREADS: 1 -> 2"
    assert second.expect.neutral
    assert second.on_inconclusive == "keep"


def test_a_plan_of_ten_lines_is_enough() -> None:
    read = read_plan(
        "version: 1\nservice: chat\nreason: why not\neffort: quick\nsteps:\n"
        "  - change: {parameter: {name: max-num-seqs, to: 64}}\n    expect: neutral\n"
    )

    assert len(read.steps) == 1


@pytest.mark.parametrize("written", ["8", '"8"', "'8'"])
def test_a_number_and_a_quoted_number_are_the_same_value(written: str) -> None:
    read = read_plan(changed(PLAN, "to: 128", f"to: {written}"))

    assert value_change(read, 0).to == "8"


@pytest.mark.parametrize(
    "written", ["1e3", "0x10", "010", "on", "yes", "True", "1_000", "2026-01-01", "0.90", ".5", "1:30"]
)
def test_a_value_stays_the_text_that_is_written(written: str) -> None:
    read = read_plan(changed(PLAN, "to: 128", f"to: {written}"))

    assert value_change(read, 0).to == written


def test_an_asserted_absence_is_not_the_same_as_no_assertion() -> None:
    asserted = value_change(read_plan(PLAN), 0)
    silent = value_change(read_plan(changed(PLAN, "from: absent, ", "")), 0)

    assert (asserted.from_given, asserted.from_) == (True, None)
    assert (silent.from_given, silent.from_) == (False, None)


def test_a_value_can_be_taken_out() -> None:
    read = read_plan(changed(PLAN, "from: absent, to: 128", "from: 64, to: absent"))

    assert value_change(read, 0).to is None
    assert read.steps[0].change.describe() == "parameter max-num-seqs: 64 -> absent"


def test_an_empty_value_in_quotes_is_a_value() -> None:
    read = read_plan(changed(PLAN, 'to: "2"', 'to: ""'))

    assert read.steps[1].change.describe() == 'environment OMP_NUM_THREADS: 1 -> ""'


def test_an_accepted_price_replaces_the_services_limit_on_the_same_figure() -> None:
    read, service = read_plan(PLAN), read_service(SERVICE)

    guards = read.guards(service.slo, read.steps[0])

    assert [str(guard) for guard in guards] == [
        "accept tpot_p95 <= 45ms",
        "slo ttft_user_p95 <= 800ms",
        "slo failures <= 1%",
    ]


def test_a_plans_own_levels_replace_the_services() -> None:
    service = read_service(SERVICE)

    assert list(read_plan(PLAN).levels(service.conditions.levels)) == ["normal", "peak"]
    without = changed(changed(PLAN, "levels: {normal: 8 streams, peak: 16 streams}, ", ""), " at peak", "")
    assert list(read_plan(without).levels(service.conditions.levels)) == ["low", "normal"]


def test_an_alias_stands_for_what_it_names() -> None:
    text = changed(PLAN, "reason: OPS-1234 GPU idle while 12 requests wait", "reason: &why queue is full")

    assert read_plan(changed(text, "ticket: OPS-1234", "ticket: *why")).ticket == "queue is full"


def test_the_schema_knows_every_kind_and_describes_every_key() -> None:
    schema = plan.json_schema(kinds.specs())

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert json.loads(json.dumps(schema)) == schema
    assert set(schema["$defs"]["Step"]["properties"]["change"]["properties"]) == set(kinds.names())
    for model in (schema, schema["$defs"]["Step"], schema["$defs"]["ConditionsOverride"]):
        assert model["additionalProperties"] is False
        assert all("description" in value for value in model["properties"].values())


def test_a_plan_may_measure_at_a_rate() -> None:
    levels = read_plan(changed(PLAN, "peak: 16 streams", "peak: 6.5 rps")).conditions.levels

    assert levels is not None
    assert (levels["peak"].rate, levels["peak"].open) == (6.5, True)
