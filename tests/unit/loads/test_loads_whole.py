"""Protocols whose answers come whole: what is sent, and which answers are good ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl import loads
from changectl.core.declared.lacking import PROTOCOL_LACKS
from changectl.core.declared.service_parts import ANSWER_PROTOCOLS
from changectl.core.measuring.metrics import METRICS
from changectl.loads import kserve_v2, openai_embeddings

TENSOR = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}
SETTINGS = {"model": "m"}
OF_LOAD = {name for name, metric in METRICS.items() if metric.source == "load"}


def vector(*numbers: Any, **usage: Any) -> str:
    entry = {"object": "embedding", "index": 0, "embedding": list(numbers)}
    return json.dumps({"object": "list", "data": [entry], "usage": usage})


def outputs(*tensors: Any) -> str:
    return json.dumps({"model_name": "m", "outputs": list(tensors)})


def tensor(**changed: Any) -> dict[str, Any]:
    return {"name": "y", "shape": [2], "datatype": "FP32", "data": [1.0, 2.0], **changed}


def test_a_service_may_declare_every_protocol_there_is() -> None:
    assert set(ANSWER_PROTOCOLS) == set(loads.names()) == set(PROTOCOL_LACKS)


@pytest.mark.parametrize("name", ["kserve_v2", "openai_embeddings"])
def test_what_is_not_measured_is_what_the_protocol_is_said_to_lack(name: str) -> None:
    assert OF_LOAD - set(loads.load(name).METRICS) == set(PROTOCOL_LACKS[name])


def test_an_embedding_is_asked_for_as_numbers() -> None:
    method, path, headers, body = openai_embeddings.build_request({"prompt": "hi"}, {**SETTINGS, "max_tokens": 1})

    assert (method, path) == ("POST", "/v1/embeddings")
    assert ("Accept", "application/json") in headers
    assert json.loads(body) == {"model": "m", "input": "hi", "encoding_format": "float"}


def test_a_vector_is_a_good_answer_and_its_input_is_counted() -> None:
    piece = openai_embeddings.read(vector(0.5, -1, 2e-3, prompt_tokens=4, total_tokens=4))

    assert (piece.finish, piece.done, piece.usage) == ("3 numbers", True, (4, None, None))


def test_an_answer_without_usage_does_not_count_its_input_as_zero() -> None:
    body = json.dumps({"data": [{"embedding": [1.0]}]})

    assert openai_embeddings.read(body).usage is None


@pytest.mark.parametrize("body", [vector(), json.dumps({"data": []})])
def test_no_vector_or_an_empty_one_is_no_answer(body: str) -> None:
    piece = openai_embeddings.read(body)

    assert (piece.finish, piece.error, piece.broken) == (None, None, None)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (vector(1, "2"), "does not consist of numbers"),
        (vector(1, None), "does not consist of numbers"),
        (vector(1, True), "does not consist of numbers"),
        (vector([1.0, 2.0]), "does not consist of numbers"),
        (vector(1.0).replace("1.0", "NaN"), "NaN is no number"),
        (json.dumps({"data": [{"embedding": "AACAPw=="}]}), "no list of numbers"),
        (json.dumps({"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]}), "2 vectors for one text"),
        (json.dumps({"object": "list"}), "no list of vectors"),
        ("<html>", "not JSON"),
        ("[1]", "not a JSON object"),
    ],
)
def test_what_is_no_vector_is_told_from_no_answer(body: str, why: str) -> None:
    piece = openai_embeddings.read(body)

    assert why in (piece.broken or "")
    assert piece.finish is None


def test_tensors_are_sent_as_the_workload_has_them_to_the_model_in_the_path() -> None:
    settings = {"model": "a/b c", "body": {"outputs": [{"name": "y"}]}}
    method, path, _, body = kserve_v2.build_request({"inputs": [TENSOR]}, settings)

    assert (method, path) == ("POST", "/v2/models/a%2Fb%20c/infer")
    assert json.loads(body) == {"inputs": [TENSOR], "outputs": [{"name": "y"}]}


@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (outputs(tensor()), "y FP32"),
        (outputs(tensor(shape=[1, 2], data=[[1, 2]])), "y FP32"),
        (outputs(tensor(), tensor(name="z", datatype="BYTES", data=["a", "b"])), "y FP32, z BYTES"),
        (outputs(tensor(shape=[], data=[3])), "y FP32"),
        (outputs(tensor(shape=[0], data=[])), None),
        (outputs(), None),
    ],
)
def test_tensors_of_the_declared_size_are_a_good_answer_and_no_values_are_none(body: str, finish: str | None) -> None:
    piece = kserve_v2.read(body)

    assert (piece.finish, piece.error, piece.broken) == (finish, None, None)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (outputs(tensor(shape=[3])), "2 values, its shape [3] declares 3"),
        (outputs(tensor(data=[1.0, None])), "no value"),
        (outputs(tensor(data=[1.0, {}])), "no value"),
        (outputs(tensor(data=None)), "no `data`"),
        (outputs(tensor(shape="2")), "no list of sizes"),
        (outputs(tensor(datatype=None)), "`datatype` is no text"),
        (outputs([1]), "not an object"),
        (outputs(tensor()).replace("2.0", "Infinity"), "Infinity is no number"),
        (json.dumps({"model_name": "m"}), "no `outputs`"),
    ],
)
def test_tensors_of_another_size_than_declared_are_broken(body: str, why: str) -> None:
    assert why in (kserve_v2.read(body).broken or "")


@pytest.mark.parametrize("member", [kserve_v2, openai_embeddings])
def test_an_error_in_the_body_is_an_error_whatever_else_stands_there(member: Any) -> None:
    body = json.dumps({"error": "out of memory", "outputs": [tensor()], "data": [{"embedding": [1.0]}]})

    assert "out of memory" in (member.read(body).error or "")


KEYS = ("data", "embedding", "outputs", "name", "shape", "datatype", "usage", "error")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner))


@given(ANY_JSON)
def test_no_document_whatever_its_shape_breaks_the_reading(message: object) -> None:
    for member in (kserve_v2, openai_embeddings):
        piece = member.read(json.dumps(message))
        assert piece.finish is None or piece.error is piece.broken is None


CASES = Path(__file__).parent / "cases" / "kserve_v2"


@pytest.mark.parametrize(
    ("case", "finish", "error"),
    [
        ("mlserver-1.7.1-answer.json", "y FP32", None),
        ("mlserver-1.7.1-unknown-model.json", None, '"Model nosuch not found"'),
    ],
)
def test_what_a_real_server_said_is_understood(case: str, finish: str | None, error: str | None) -> None:
    piece = kserve_v2.read((CASES / case).read_text(encoding="utf-8"))

    assert (piece.finish, piece.error, piece.broken) == (finish, error, None)
