from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.engines.support import page, text

from changectl.core.engine import Page
from changectl.core.errors import InputError
from changectl.core.telemetry.engine_page import read_page
from changectl.engines import load, names
from changectl.engines.generic import Generic, make

DESCRIPTION: dict[str, Any] = {
    "ready": "GET /healthz 200",
    "answer": {"protocol": "openai_completions"},
    "settings": {"concurrency_limit": {"flag": "--workers", "type": "int"}, "queue": {"env": "APP_QUEUE"}},
    "metrics": {
        "page": "/metrics",
        "waiting": "app_queue_depth",
        "running": "app_in_flight",
        "tokens": "app_tokens_total",
    },
}
ANSWER = page('{"choices":[{"text":"ab"}],"usage":{"completion_tokens":2}}')


def engine(**changed: Any) -> Generic:
    description = {key: value for key, value in {**DESCRIPTION, **changed}.items() if value is not None}
    made = load({"generic": description})
    assert isinstance(made, Generic)
    return made


def test_the_family_lists_its_members() -> None:
    assert {"generic", "llamacpp", "vllm"} <= set(names())


def test_an_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="llamacpp"):
        load("vlm")
    with pytest.raises(InputError, match="no description"):
        load({"vllm": {"ready": "GET / 200"}})
    with pytest.raises(InputError, match="how it is ready"):
        load("generic")


def test_declared_settings_are_found_and_read_from_the_process() -> None:
    found = engine()

    assert found.setting("concurrency_limit").flags == ("--workers",)
    assert found.running(["app", "--workers", "8"], {"APP_QUEUE": "5"}) == {"concurrency_limit": "8", "queue": "5"}
    assert found.same(found.setting("concurrency_limit"), "8", "08")


def test_metrics_are_read_under_their_declared_names() -> None:
    recorded = page(text("generic", "metrics.txt"))
    found = read_page(engine().metric_table, recorded)

    assert (found.value("waiting"), found.value("running"), found.value("generated_tokens")) == (3, 3, 120)
    assert engine().token_counter({"metrics": recorded}) == 120


def test_undeclared_or_absent_series_are_not_zero() -> None:
    assert read_page(engine().metric_table, page("other 1\n")).missing["waiting"] == "not on the metrics page"
    assert read_page(engine().metric_table, page("other 1\n")).missing["kv_use"] == "not exposed"
    assert engine(metrics=None).token_counter({}) is None


def test_times_may_be_in_another_unit_and_shares_in_percent() -> None:
    metrics = {"page": "/m", "queue_time": {"series": "q", "unit": "ms"}, "kv_use": {"series": "k", "unit": "percent"},
               "ttft": {"series": "t", "histogram": True}}  # fmt: skip
    found = read_page(engine(metrics=metrics).metric_table, page("q 250\nk 75\nt_sum 3\nt_count 2\n"))

    assert (found.value("queue_time"), found.value("kv_use")) == (0.25, 0.75)
    assert found.readings["ttft"].mean == 1.5


def test_it_is_ready_with_the_declared_status_and_a_real_answer() -> None:
    assert engine().readiness({"health": page(""), "answer": ANSWER}, None).state == "ready"
    assert engine().readiness({"health": page("")}, None).state == "not_serving"
    assert engine(answer=None).readiness({"health": page("")}, None).state == "ready"


def test_another_status_than_declared_is_not_ready() -> None:
    assert engine().readiness({"health": page("", 503)}, None).state == "loading"
    assert engine().readiness({"health": page("", 404)}, None).state == "not_serving"
    assert engine(ready="GET /x 204").readiness({"health": page("", 204), "answer": ANSWER}, None).state == "ready"
    assert engine().readiness({"health": Page(error="refused")}, None).state == "loading"
    assert engine().readiness({}, None).state == "not_serving"


def test_a_counter_that_stands_still_is_not_serving() -> None:
    still = page(text("generic", "metrics.txt"))
    pages = {"health": page(""), "answer": ANSWER, "metrics_before": still, "metrics": still}

    assert engine().readiness(pages, None).state == "not_serving"


def test_a_listed_other_model_is_the_wrong_model() -> None:
    pages = {"health": page(""), "models": page('{"data":[{"id":"a"}]}'), "answer": ANSWER}

    assert engine().readiness(pages, "b").state == "wrong_model"


def test_an_unknown_program_is_never_asked_for_help() -> None:
    assert engine().help_argv(["/opt/app", "--workers", "8"]) == []


def test_probes_follow_the_description() -> None:
    assert [request.name for request in engine(answer=None, metrics=None).probes("http://h", None, None)] == ["health"]
    first = engine().probes("http://h:1", "m", None)[0]

    assert (first.method, first.url) == ("GET", "http://h:1/healthz")


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"ready": "healthz"}, "engine/generic/ready"),
        ({"answer": {"protocol": "grpc"}}, "answer/protocol"),
        ({"settings": {"a": {}}}, "settings/a"),
        ({"settings": {"a": {"flag": "--a", "type": "number"}}}, "settings/a/type"),
        ({"settings": {"a": {"flags": "--a"}}}, "settings/a/flags"),
        ({"metrics": {"waiting": "x"}}, "metrics"),
        ({"metrics": ["x"]}, "metrics"),
        ({"metrics": {"page": "/m", "wait": "x"}}, "metrics/wait"),
        ({"metrics": {"page": "/m", "queue_time": {"series": "x", "unit": "minutes"}}}, "metrics/queue_time/unit"),
        ({"metrics": {"page": "/m", "waiting": {"series": "x", "unit": "ms"}}}, "metrics/waiting/unit"),
        ({"metrics": {"page": "/m", "waiting": {"series": "x", "histogram": True}}}, "metrics/waiting/histogram"),
        ({"metrics": {"page": "/m", "waiting": {"unit": "percent"}}}, "metrics/waiting"),
        ({"more": 1}, "more"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_path(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError, match=path):
        make({**DESCRIPTION, **changed})


TENSOR = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}
KSERVE = {"answer": {"protocol": "kserve_v2", "inputs": [TENSOR]}, "metrics": None}
OUTPUT = {"name": "y", "shape": [1], "datatype": "INT64", "data": [3]}
HEALTHY = {"health": page("")}


def requests(found: Generic, model: str | None) -> dict[str, Any]:
    return {request.name: request for request in found.probes("http://h:1", model, None)}


def test_an_embedding_server_is_ready_when_it_has_answered_with_a_vector() -> None:
    found = engine(answer={"protocol": "openai_embeddings"}, metrics=None)
    asked = requests(found, "m")
    good = page('{"data": [{"embedding": [0.5, 1.5, 2.5]}], "usage": {"prompt_tokens": 1}}')

    assert (asked["models"].url, asked["answer"].url) == ("http://h:1/v1/models", "http://h:1/v1/embeddings")
    assert json.loads(asked["answer"].body)["input"]
    assert found.readiness({**HEALTHY, "answer": good}, "m").detail == "answered 3 numbers"
    assert found.readiness({**HEALTHY, "answer": page('{"data": []}')}, "m").state == "not_serving"
    assert found.readiness({**HEALTHY, "answer": ANSWER}, "m").state == "not_serving"


def test_a_server_of_tensors_is_asked_with_the_declared_ones_and_for_its_model_by_name() -> None:
    found = engine(**KSERVE)
    asked = requests(found, "iris")
    named, other = page('{"name": "iris", "versions": []}'), page('{"name": "lily"}')
    good = page(json.dumps({"model_name": "iris", "outputs": [OUTPUT]}))

    assert (asked["models"].url, asked["answer"].url) == (
        "http://h:1/v2/models/iris",
        "http://h:1/v2/models/iris/infer",
    )
    assert json.loads(asked["answer"].body) == {"inputs": [TENSOR]}
    assert found.readiness({**HEALTHY, "models": named, "answer": good}, "iris").detail == "answered y INT64"
    assert found.readiness({**HEALTHY, "models": other, "answer": good}, "iris").state == "wrong_model"
    assert found.readiness({**HEALTHY, "answer": page("{}", 404)}, "iris").state == "not_serving"
    assert found.readiness({**HEALTHY, "answer": page('{"error": "no model"}')}, "iris").state == "not_serving"
