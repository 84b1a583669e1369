"""A parameter that the service file names once more: what contradicts it is refused before any restart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.probes.situations import ENGINE, situation

from changectl import engines, probes
from changectl.core.precheck import CheckResult, CheckState, Situation

VLLM = engines.load("vllm")


def asked(name: str, to: str | None, **changed: object) -> CheckResult:
    declared = replace(situation(name=name, setting=ENGINE.setting(name), to=to), **changed)  # type: ignore[arg-type]
    return probes.load("named_by_service").run(declared)


@pytest.mark.parametrize(
    ("endpoint", "port", "state"),
    [
        ("http://127.0.0.1:8080", "8080", "passed"),
        ("http://127.0.0.1:8080", " 8080 ", "passed"),
        ("http://127.0.0.1:8080", "8081", "failed"),
        ("http://127.0.0.1", "80", "passed"),
        ("http://127.0.0.1", "8080", "failed"),
        ("https://chat.example", "443", "passed"),
        ("http://[::1]:8080", "8080", "passed"),
        ("http://127.0.0.1:8080", "eight", "failed"),
        ("http://127.0.0.1:8080", None, "unknown"),
    ],
)
def test_the_port_is_the_one_that_the_endpoint_names(endpoint: str, port: str | None, state: CheckState) -> None:
    assert asked("port", port, endpoint=endpoint).state == state


@pytest.mark.parametrize(
    ("endpoint", "address", "state"),
    [
        ("http://10.0.0.5:8080", "0.0.0.0", "passed"),
        ("http://10.0.0.5:8080", "::", "passed"),
        ("http://10.0.0.5:8080", "10.0.0.5", "passed"),
        ("http://10.0.0.5:8080", "127.0.0.1", "failed"),
        ("http://10.0.0.5:8080", "10.0.0.6", "failed"),
        ("http://127.0.0.1:8080", "localhost", "passed"),
        ("http://127.0.0.1:8080", "::1", "failed"),
        ("http://127.0.0.1:8080", "10.0.0.5", "failed"),
        ("http://[::1]:8080", "::1", "passed"),
        ("http://gpu1.example:8080", "10.0.0.5", "unknown"),
        ("http://gpu1.example:8080", "GPU1.example", "passed"),
        ("http://gpu1.example:8080", "localhost", "failed"),
        ("http://gpu1.example:8080", "/run/chat.sock", "failed"),
        ("http://10.0.0.5:8080", None, "unknown"),
    ],
)
def test_the_address_is_one_by_which_the_endpoint_is_reached(
    endpoint: str, address: str | None, state: CheckState
) -> None:
    assert asked("host", address, endpoint=endpoint).state == state


@pytest.mark.parametrize(
    ("declared", "path", "state"),
    [
        ("/srv/m.gguf", "/srv/m.gguf", "passed"),
        ("/srv/m.gguf", "/srv/n.gguf", "failed"),
        ("/srv/m.gguf", "/srv/m.gguf.new", "failed"),
        ("/srv/models", "/srv/models/b-00001-of-2.gguf", "passed"),
        ("/srv/models/", "/srv/models", "passed"),
        ("/srv/models", "org/model", "failed"),
        ("/srv/models", None, "unknown"),
        (None, "/srv/models", "unknown"),
    ],
)
def test_the_model_is_the_one_that_is_checked_and_saved(
    declared: str | None, path: str | None, state: CheckState
) -> None:
    assert asked("model", path, model_path=declared).state == state


@pytest.mark.parametrize(
    ("expected", "name", "state"),
    [
        ("chat", "chat", "passed"),
        ("chat", "new,chat", "passed"),
        ("chat", "new chat", "passed"),
        ("chat", "chatty", "failed"),
        ("chat", None, "unknown"),
        (None, "anything", "passed"),
    ],
)
def test_the_model_still_answers_to_its_name(expected: str | None, name: str | None, state: CheckState) -> None:
    assert asked("alias", name, expected_model=expected).state == state


@pytest.mark.parametrize(("engine", "names"), [
    (ENGINE, ["port", "host", "model", "alias", "--port", "LLAMA_ARG_PORT", "model_name"]),
    (VLLM, ["port", "host", "model", "served-model-name", "model_path"]),
    (engines.load({"generic": {"ready": "GET / 200", "settings": {"port": {"flag": "--listen"}}}}), ["port"]),
])  # fmt: skip
def test_every_engine_that_names_such_a_setting_is_held_to_it(engine: object, names: list[str]) -> None:
    for name in names:
        setting = engine.setting(name)  # type: ignore[attr-defined]
        result = asked("port", "elsewhere", engine=engine, setting=setting)
        assert (result.state, result.level, result.refuses) == ("failed", "required", True), name


def test_the_sentence_says_what_contradicts_what_and_what_to_do() -> None:
    result = asked("port", "9000")

    assert "port 9000" in result.detail
    assert "http://127.0.0.1:8080" in result.detail
    assert "another kind of change" in result.hint
    assert "Change `endpoint` in the service file in the same commit" in result.hint


def test_other_settings_and_plain_variables_are_none_of_its_business() -> None:
    assert asked("threads", "4").state == "not_applicable"
    variable = replace(situation(name="OMP_NUM_THREADS", to="4"), setting=None)
    assert probes.load("named_by_service").run(variable).state == "not_applicable"


def test_without_the_service_file_nothing_passes() -> None:
    assert probes.load("named_by_service").run(Situation()).state == "unknown"
