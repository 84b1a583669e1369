"""The demo's server is found only if it really is that server, and it is surely stopped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from changectl import engines
from changectl.demo import llama_server
from changectl.demo.project import free_port
from changectl.demo.server import NotAsPromised, Server

HEALTHY = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
http.server.HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
BROKEN = "import sys; sys.exit('the model file is cut short')"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + HEALTHY


def test_the_launcher_tells_in_its_help_which_values_it_takes_as_llama_server_does() -> None:
    engine = engines.load("llamacpp")

    for name in ("cache-type-k", "cache-type-v"):
        problem = engine.value_problem(engine.setting(name), "nonsense", llama_server.usage())
        assert problem is not None
        assert "allows f32, f16, bf16, q8_0" in problem
        assert engine.value_problem(engine.setting(name), "q8_0", llama_server.usage()) is None


def project(folder: Path, program: str, port: int, stop_deadline: float = 10.0) -> Server:
    service = folder / "service"
    service.mkdir()
    (service / "program.py").write_text(program.replace("{port}", str(port)))
    script = f"#!/bin/sh\n{sys.executable} program.py >server.log 2>&1 </dev/null &\necho $! >chat.pid\n"
    (service / "run-chat").write_text(script)
    (service / "run-chat").chmod(0o755)
    return Server(folder, port, stop_deadline)


def test_a_started_server_is_found_and_gone_after_stop(tmp_path: Path) -> None:
    server = project(tmp_path, HEALTHY, free_port())
    try:
        server.start()
        assert server.pid() is not None
    finally:
        server.stop()
    assert server.pid() is None


def test_a_server_that_ends_while_it_starts_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = project(tmp_path, BROKEN, free_port())
    with pytest.raises(NotAsPromised, match="the model file is cut short"):
        server.start()


def test_a_server_that_does_not_listen_to_sigterm_is_ended_by_force(tmp_path: Path) -> None:
    server = project(tmp_path, DEAF, free_port(), stop_deadline=0.3)
    server.start()
    server.stop()
    assert server.pid() is None


def test_a_process_that_only_inherited_the_number_is_not_touched(tmp_path: Path) -> None:
    server = project(tmp_path, HEALTHY, free_port())
    (tmp_path / "service" / "chat.pid").write_text(f"{os.getpid()}\n")
    assert server.pid() is None
    server.stop()  # would end this test


@pytest.mark.parametrize("text", ["", "none", "-5", "0", "99999999999"])
def test_a_pid_file_without_a_process_is_no_server(tmp_path: Path, text: str) -> None:
    server = project(tmp_path, HEALTHY, free_port())
    (tmp_path / "service" / "chat.pid").write_text(text)
    assert server.pid() is None
