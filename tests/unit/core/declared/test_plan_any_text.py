"""Whatever an operator types, the answer is a plan, a service, or a list of problems; never a traceback."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.unit.core.declared.grammar_samples import COMMAND_SERVICE, PLAN, SERVICE, read_plan, read_service

from changectl.core.declared import project
from changectl.core.declared.render import render
from changectl.core.errors import InputError
from changectl.core.workload import requests as workload

PIECES = st.one_of(
    st.text(max_size=4),
    st.sampled_from(
        ["{", "}", "[", "]", ": ", "\n", "  ", "- ", "\t", "&a ", "*a", "!!int ", "!x ", "<<: ", "%", "---\n", "~", "|",
         ">", "'", '"', "#", "{{ x }}", "{% if %}", "absent", "neutral", "? ", "\u2028", "\ufeff", "\\", "@", "`"]
    ),
)  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, text: str) -> str:
    """The text with a few pieces cut out and others put in."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 12))
        text = text[:start] + draw(PIECES) + text[start + length :]
    return text


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.text(max_size=5),
        st.sampled_from(["1", "quick", "neutral", "\ud800"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


@st.composite
def replacements(draw: st.DrawFn, text: str) -> Any:
    """The text's data with one value anywhere in it replaced by something else."""
    data = YAML(typ="safe", pure=True).load(text)
    node = data
    while True:
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            node[key] = draw(VALUES)
            return data
        node = inner


@settings(max_examples=150, deadline=None)
@given(mutations(PLAN))
def test_a_mutated_plan_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        read_plan(text)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([SERVICE, COMMAND_SERVICE]).flatmap(mutations))
def test_a_mutated_service_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        render(read_service(text), {"ansible_host": "h", "vault_chat_key": "k", "port": 1})


@settings(max_examples=100, deadline=None)
@given(replacements(PLAN), replacements(SERVICE))
def test_any_value_in_any_place_is_read_or_refused(plan_data: Any, service_data: Any) -> None:
    import json

    with suppress(InputError):
        read_plan(json.dumps(plan_data))
    with suppress(InputError):
        read_service(json.dumps(service_data))


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(), mutations('inventory = "inventory"\nstate_dir = "/srv/x"\n')))
def test_any_project_file_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        project.load(text, "changectl.toml")


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.binary(), mutations('{"id": "a", "prompt": "x", "max_tokens": 3}\n').map(str.encode)))
def test_any_workload_is_read_or_refused(content: bytes) -> None:
    with suppress(InputError):
        workload.load(content, "w.jsonl")
