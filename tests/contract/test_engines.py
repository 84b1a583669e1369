"""What every engine promises, whatever it is: no data is never ready, effective or understood."""

from __future__ import annotations

import re
from typing import Any

import pytest

from changectl import engines
from changectl.core.engine import Engine, Page
from changectl.core.telemetry.engine_page import read_page
from changectl.core.telemetry.engine_series import BY_NAME, TO_CANONICAL

GENERIC: dict[str, Any] = {
    "ready": "GET /healthz 200",
    "answer": {"protocol": "openai_completions"},
    "settings": {"concurrency_limit": {"flag": "--workers", "type": "int"}},
    "metrics": {"page": "/metrics", "tokens": "app_tokens_total"},
}
ALL = [engines.load({"generic": GENERIC} if name == "generic" else name) for name in engines.names()]
BROKEN = [
    Page(error="refused"),
    Page(status=500, body="{}"),
    Page(status=200, body="<html>"),
    Page(status=200, body="[1]"),
]


@pytest.fixture(params=ALL, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


def test_it_keeps_the_protocol(engine: Engine) -> None:
    assert isinstance(engine, Engine)
    assert engine.versions
    assert set(engine.precedence) <= {"flags", "file", "env"}


def test_no_pages_mean_not_ready_and_nothing_effective(engine: Engine) -> None:
    assert engine.readiness({}, "m").state != "ready"
    assert engine.effective({}, []) == {}
    assert engine.token_counter({}) is None
    assert engine.version({}, []) is None
    assert engine.deepest_cause([]) is None


@pytest.mark.parametrize("page", BROKEN, ids=["refused", "500", "html", "list"])
def test_broken_pages_are_not_ready_and_never_an_exception(engine: Engine, page: Page) -> None:
    pages = {request.name: page for request in engine.probes("http://h:1", "m", None)}

    assert engine.readiness(pages, "m").state != "ready"
    assert engine.effective(pages, []) == {}
    assert engine.token_counter(pages) is None
    assert engine.capacity(pages, []).kv_tokens is None


def test_probes_have_different_names_and_carry_the_token_in_a_header_only(engine: Engine) -> None:
    requests = engine.probes("http://h:1", "m", {"bearer": "sesame"})

    assert len({request.name for request in requests}) == len(requests)
    assert all("sesame" not in request.url and "sesame" not in (request.body or "") for request in requests)
    assert all(request.headers.get("Authorization") == "Bearer sesame" for request in requests)


def test_names_and_flags_of_settings_are_unique(engine: Engine) -> None:
    flags = [flag for row in engine.settings for flag in (*row.flags, *([row.negation] if row.negation else []))]
    canonical = [row.canonical for row in engine.settings if row.canonical]

    assert len(set(flags)) == len(flags)
    assert len(set(canonical)) == len(canonical)
    assert len({row.name for row in engine.settings}) == len(engine.settings)


def test_failure_lines_are_expressions_with_a_cause(engine: Engine) -> None:
    for row in engine.failure_lines:
        re.compile(row.pattern)
        assert re.fullmatch(r"[a-z_]+", row.cause)


def test_absent_equals_only_absent(engine: Engine) -> None:
    for row in engine.settings:
        assert engine.same(row, None, None)
        assert not engine.same(row, None, "0")
        assert engine.same(row, "1", "1")


def test_a_number_of_thousands_of_digits_is_a_value_like_any_other(engine: Engine) -> None:
    for row in engine.settings:
        for text in ("9" * 5000, "9" * 5000 + "k"):
            assert not engine.same(row, text, "1")
            engine.value_problem(row, text)
            engine.unfit(row, text)
            assert engine.number({row.name: text}, row.name) is None


def test_foreign_text_is_no_help_of_the_engine(engine: Engine) -> None:
    row = engine.settings[0]

    assert engine.knows("", row) is None
    assert engine.knows("usage: cat [OPTION]... [FILE]...\n  -n, --number\n", row) is None


def test_a_process_without_arguments_has_no_settings_and_cannot_be_asked(engine: Engine) -> None:
    assert engine.running([], {}) == {}
    assert engine.help_argv([]) == []
    assert engine.drain_seconds([], {}) == 0


def test_metrics_have_canonical_names_known_units_and_shapes_that_fit(engine: Engine) -> None:
    for name, spellings in engine.metric_table.series.items():
        row = BY_NAME[name]
        for series in spellings:
            assert series.unit in TO_CANONICAL
            assert series.name
            assert row.kind == "time" or not series.histogram
            assert (row.kind == "time") <= (series.unit in {"s", "ms", "us", "ns"})


@pytest.mark.parametrize("page", BROKEN, ids=["refused", "500", "html", "list"])
def test_a_broken_metrics_page_leaves_everything_missing(engine: Engine, page: Page) -> None:
    found = read_page(engine.metric_table, page, "m")

    assert not found.readings
    assert all(found.missing.values())
