"""The engine the lab and the demo use: llama.cpp's own server behind llama-server's command line. Needs no root."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl.core.errors import InputError
from changectl.demo.tinymodel import write_gguf

LAUNCHER = Path(__file__).resolve().parents[2] / "src" / "changectl" / "demo" / "llama_server.py"
Start = Callable[..., tuple["subprocess.Popen[str]", int]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture
def start(model: Path) -> Iterator[Start]:
    """Start a server and wait until it is healthy; all are stopped at the end."""
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], int]:
        port = free_port()
        command = [sys.executable, str(LAUNCHER), "--model", str(model), "--port", str(port), *arguments]
        process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
        running.append(process)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                ask(port, "/health")
                break
            except OSError:
                time.sleep(0.02)
        return process, port

    yield begin
    for process in running:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=10) as answer:
        return json.load(answer)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LAUNCHER), *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=30, check=False
    )


def test_the_same_size_and_seed_give_the_same_model(tmp_path: Path) -> None:
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))

    assert write_gguf(first) == write_gguf(second) == write_gguf(other, seed=21)

    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second", "other"}


def test_an_unknown_model_size_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="small, medium, large"):
        write_gguf(tmp_path / "model", "huge")


def test_every_token_is_one_visible_character(start: Start) -> None:
    _, port = start()

    answer = ask(port, "/v1/completions", {"prompt": "Hello", "max_tokens": 200})

    text = answer["choices"][0]["text"]
    assert answer["usage"]["completion_tokens"] == len(text) == 200
    assert all("!" <= character <= "~" for character in text)


@pytest.mark.parametrize(("slots", "context"), [("1", 4096), ("4", 1024)])
def test_slots_split_the_context(start: Start, slots: str, context: int) -> None:
    _, port = start("--parallel", slots, "--ctx-size", "4096")

    settings = ask(port, "/props")

    assert settings["total_slots"] == int(slots)
    assert settings["default_generation_settings"]["n_ctx"] == context


def test_a_flag_beats_a_variable_and_a_variable_beats_the_config_file(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "server.yaml"
    config.write_text("parallel: 8  # weakest\nalias: 'from-file'\nmetrics: on\n")
    process, port = start(
        "--config", str(config), "--parallel", "2", LLAMA_ARG_N_PARALLEL="4", LLAMA_ARG_ALIAS="from-variable"
    )

    settings = ask(port, "/props")

    assert (settings["total_slots"], settings["model_alias"]) == (2, "from-variable")
    assert settings["endpoint_metrics"] is True
    process.terminate()
    assert process.stderr is not None
    assert "warn: LLAMA_ARG_N_PARALLEL environment variable is set, but will be overwritten" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--paralel", "2"), "error: invalid argument: --paralel"),
        (("--parallel", "two"), 'error while handling argument "--parallel": stoi'),
        (("--parallel",), 'error while handling argument "--parallel": expected value'),
        ((), "error: --model is required"),
    ],
)
def test_wrong_arguments_end_with_the_engines_words(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)

    assert done.returncode == 1
    assert words in done.stderr


def test_a_wrong_variable_ends_with_its_name(model: Path) -> None:
    done = run("--model", str(model), LLAMA_ARG_CTX_SIZE="much")

    assert done.returncode == 1
    assert 'error while handling environment variable "LLAMA_ARG_CTX_SIZE": stoi' in done.stderr


@pytest.mark.parametrize("damage", ["missing", "truncated", "pointer"])
def test_a_damaged_model_ends_the_start(model: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.gguf"
    if damage == "truncated":
        path.write_bytes(model.read_bytes()[:100_000])
    if damage == "pointer":
        path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 156672\n")

    done = run("--model", str(path), "--port", str(free_port()))

    assert done.returncode == 1
    assert f"failed to load model '{path}'" in done.stderr


def test_a_busy_port_ends_the_start(start: Start, model: Path) -> None:
    _, port = start()

    done = run("--model", str(model), "--port", str(port))

    assert done.returncode == 1
    assert "couldn't bind" in done.stderr


def test_a_stop_is_clean_and_quick_also_while_an_answer_streams(start: Start) -> None:
    process, port = start("--ctx-size", "8192", "--parallel", "1")
    body = json.dumps({"prompt": "Hello", "max_tokens": 8000, "stream": True}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", body, timeout=10) as stream:
        assert stream.readline().startswith(b"data: ")
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=10) == 0
        assert time.monotonic() - started < 5


def test_the_help_lists_every_flag_with_its_variable() -> None:
    text = run("--help").stdout

    for words in ("-np,   --parallel N", "(env: LLAMA_ARG_N_PARALLEL)", "--slots, --no-slots", "--config FILE"):
        assert words in text
