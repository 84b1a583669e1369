"""Whatever stands on an engine's pages, reading it is no error: what makes no sense is missing, and never a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engines.support import llamacpp_pages, page, vllm_pages

from changectl import engines
from changectl.core.engine import Engine, Page
from changectl.core.judging.observation import Observation, judge_observed
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.core.telemetry.engine_window import window
from changectl.core.telemetry.prometheus import parse

GENERIC = {
    "ready": "GET /health 200",
    "answer": {"protocol": "openai_completions"},
    "metrics": {"page": "/metrics", "tokens": "llamacpp:tokens_predicted_total"},
}
RECORDED: dict[str, tuple[Engine, Mapping[str, Page]]] = {
    "llamacpp": (engines.load("llamacpp"), llamacpp_pages()),
    "vllm": (engines.load("vllm"), vllm_pages()),
    "generic": (engines.load({"generic": GENERIC}), llamacpp_pages()),
}
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(10**30), st.just(math.inf)
)
NONSENSE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner), max_leaves=3
)
NUMBERS = ("NaN", "+Inf", "-1", "-1e308", "0", "1e308", "1.7e308", "9" * 400)
DEEP = "[" * 100_000


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Of every value within a document."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(one for key, value in inner for one in places(value, (*path, key)))]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = replaced(document[path[0]], path[1:], value)
    return copy


@st.composite
def lies(draw: st.DrawFn, recorded: Mapping[str, Page]) -> dict[str, Page]:
    """The recorded pages, each with nonsense in one place, or as it is."""
    pages = dict(recorded)
    for name, one in recorded.items():
        if not draw(st.booleans()):
            continue
        if one.body.startswith(("{", "[")):
            document = json.loads(one.body)
            path = draw(st.sampled_from(places(document)))
            pages[name] = page(json.dumps(replaced(document, path, draw(NONSENSE))))
        elif "# TYPE" in one.body:
            pages[name] = page(draw(counters(one.body)))
    return pages


@st.composite
def counters(draw: st.DrawFn, text: str) -> str:
    """A metrics page on which some families say something else."""
    lines = text.splitlines()
    rows = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    first = draw(st.sampled_from(rows))
    for number in rows[rows.index(first) :][: draw(st.integers(1, 40))]:
        lines[number] = f"{lines[number].rsplit(' ', 1)[0]} {draw(st.sampled_from(NUMBERS))}"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", RECORDED)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_nonsense_on_any_page_is_no_error(name: str, data: st.DataObject) -> None:
    engine, recorded = RECORDED[name]
    pages = data.draw(lies(recorded))

    assert engine.readiness(pages, "chat").state in ("ready", "loading", "not_serving", "wrong_model")
    assert all(isinstance(value, str) for value in engine.effective(pages).values())
    engine.version(pages)
    engine.capacity(pages)
    engine.token_counter(pages)


@pytest.mark.parametrize("name", RECORDED)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_figure_that_is_read_is_a_finite_number_and_none_is_below_zero(name: str, data: st.DataObject) -> None:
    engine, recorded = RECORDED[name]
    read = [
        read_page(engine.metric_table, page(data.draw(counters(recorded["metrics"].body))), "chat") for _ in range(2)
    ]

    assert all(0 <= figure < math.inf for one in read for figure in figures(one))
    seen = [Observation(60.0, window(read[0], later)) for later in read]
    judge_observed(seen[0], seen[1])


def figures(read: EnginePage) -> list[float]:
    """All numbers of a page, those of buckets too."""
    return [
        figure
        for one in read.readings.values()
        for figure in (one.value, one.count or 0.0, *(count for _, count in one.buckets))
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_a_page_nested_beyond_all_measure_says_nothing(name: str) -> None:
    engine, recorded = RECORDED[name]
    pages = {**dict.fromkeys(recorded, page(DEEP)), "health": page("")}

    assert engine.readiness(pages, "chat").state != "ready"
    assert engine.effective(pages) == {}


def test_numbers_whose_sum_is_none_have_no_sum() -> None:
    assert parse('a{b="1"} 1.7e308\na{b="2"} 1.7e308\n').total("a") is None


@pytest.mark.parametrize("answer", ['{"choices": {"0": 1}}', '{"choices": [{"message": "x"}]}', '{"choices": [5]}',
                                    '{"choices": [{}], "usage": {"completion_tokens": true}}'])  # fmt: skip
def test_what_has_no_text_where_the_text_of_an_answer_belongs_is_no_answer(answer: str) -> None:
    engine, recorded = RECORDED["vllm"]
    served = json.loads(recorded["models"].body)["data"][0]["id"]

    assert engine.readiness({**recorded, "answer": page(answer)}, served).state == "not_serving"
