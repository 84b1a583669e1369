"""The command manager with real processes: found, stopped whole, started as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, command, procfs, status

SERVER = """
import http.server, os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if os.environ.get("STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ.get("SLOW"):
    print("loading the model", flush=True)
    time.sleep(float(os.environ["SLOW"]))
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
open("pid", "w").write(str(os.getpid()))
print("serving", os.environ.get("FLAVOUR"), flush=True)
server.serve_forever()
"""


class Service:
    """A service with a child process, in a folder of its own."""

    def __init__(self, host: Any, port: int) -> None:
        self.host = host
        self.port = port
        self.home = host.folder / "srv"
        self.home.mkdir()
        (self.home / "server.py").write_text(textwrap.dedent(SERVER))
        self.manager = {
            "command": {"start": [sys.executable, "server.py", str(port)], "cwd": str(self.home), "pid": {"port": port}}
        }

    def act(self, action: str, **args: Any) -> dict[str, Any]:
        return dict(self.host.call("service", manager=self.manager, action=action, stop_timeout=3, **args))

    def wait(self) -> int:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            pid = command.find(self.manager["command"])
            if pid is not None:
                return pid
            time.sleep(0.05)
        raise AssertionError("the service did not come up")


@pytest.fixture
def service(host: Any, free_port: int) -> Iterator[Service]:
    made = Service(host, free_port)
    yield made
    # Whatever still runs of ours lives in the service's folder.
    for item in procfs.everyone():
        if (procfs.link(item.pid, "cwd") or "").startswith(str(made.home)):
            os.kill(item.pid, signal.SIGKILL)


def test_a_service_is_started_detached_and_stopped_with_its_children(service: Service) -> None:
    assert service.act("start")["changed"]
    pid = service.wait()
    members = procfs.tree(pid)
    assert len(members) == 2
    assert os.getsid(pid) != os.getsid(0)
    assert not service.act("start")["changed"]
    answer = service.act("stop")
    assert answer["changed"]
    assert not any(procfs.alive(identity) for identity in members)
    assert service.port not in procfs.listening()
    assert not service.act("stop")["changed"]


def test_a_restart_uses_the_environment_folder_and_limits_as_they_were(service: Service) -> None:
    subprocess.run(["sh", "-c", "ulimit -n 333; exec setsid \"$0\" server.py \"$1\" >/dev/null 2>&1 &", sys.executable,
                    str(service.port)], check=True, cwd=service.home,
                   env={"FLAVOUR": "a\nb", "PATH": "/bin"})  # fmt: skip
    old = service.wait()
    before = procfs.parse_environ(procfs.read(old, "environ"))
    answer = service.host.call("capture", files=[], manager=service.manager, process=True)
    assert "environ" not in answer["process"]
    service.act("restart", environment_from_snapshot=True)
    new = service.wait()
    assert new != old
    assert procfs.parse_environ(procfs.read(new, "environ")) == before
    assert procfs.parse_limits(procfs.read(new, "limits").decode())["Max open files"] == ["333", "333"]
    assert procfs.link(new, "cwd") == str(service.home)
    service.act("restart", environment_from_snapshot=True, environment_drop=["FLAVOUR"])
    assert "FLAVOUR" not in procfs.parse_environ(procfs.read(service.wait(), "environ"))


def test_a_service_that_ignores_the_signal_is_killed_with_its_tree(service: Service, monkeypatch: Any) -> None:
    monkeypatch.setenv("STUBBORN", "1")
    service.act("start")
    members = procfs.tree(service.wait())
    answer = service.host.call("service", manager=service.manager, action="stop", stop_timeout=0.5)
    assert answer["killed"]
    assert not any(procfs.alive(identity) for identity in members)


def test_a_service_that_still_loads_is_activating_and_can_be_stopped(service: Service, monkeypatch: Any) -> None:
    monkeypatch.setenv("SLOW", "60")
    answer = service.act("start")
    assert answer["started_pid"] is None
    deadline = time.monotonic() + 5
    while True:
        now = service.host.call("status", manager=service.manager)
        if now["log"] or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert now["active"] == "activating"
    assert now["log"] == ["loading the model"]
    assert now["process"]["pid"] == answer["launched_pid"]
    assert service.act("stop")["changed"]
    assert service.host.call("status", manager=service.manager)["active"] == "failed"
    assert procfs.stat(answer["launched_pid"]) is None


def test_a_service_that_dies_at_once_is_failed_with_its_log(service: Service) -> None:
    service.manager["command"]["start"] = [sys.executable, "-c", "raise SystemExit('no such model')"]
    answer = service.act("start")
    now = service.host.call("status", manager=service.manager, log_file=answer["log_file"])
    assert now["active"] == "failed"
    assert now["log"] == ["no such model"]
    assert now["process"] is None


def test_a_start_command_that_does_not_exist_is_said_so(service: Service) -> None:
    service.manager["command"]["start"] = ["/no/such/program"]
    with pytest.raises(Failure) as caught:
        service.act("start")
    assert caught.value.reason == "start_failed"
    assert "No such file" in caught.value.message


def test_a_port_that_somebody_else_takes_is_named(service: Service) -> None:
    service.act("start")
    pid = service.wait()
    # A stranger shares the socket and lives on in a session of its own.
    service.manager["command"]["stop"] = [sys.executable, "-c", f"import os,signal; os.kill({pid}, signal.SIGKILL)"]
    stranger = subprocess.Popen([sys.executable, "-c", textwrap.dedent(f"""
        import socket, time
        while True:
            try:
                s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", {service.port})); s.listen(); break
            except OSError:
                s.close(); time.sleep(0.005)
        time.sleep(60)
    """), "--api-key", "sk-hidden"])  # fmt: skip
    try:
        with pytest.raises(Failure) as caught:
            service.act("stop")
        assert f"by {stranger.pid} ({Path(sys.executable).name})" in caught.value.message
        assert "hidden" not in str(caught.value.as_dict())  # nobody else's arguments: they may hold secrets
        assert caught.value.reason == "still_held"
        assert caught.value.details == {"pids": [stranger.pid], "ports": [service.port]}
    finally:
        stranger.kill()
        stranger.wait()


def test_a_start_says_where_the_log_ended_before_it(service: Service) -> None:
    log = service.home / "own.log"
    log.write_text("the earlier start failed\n")
    told = service.act("start", log_file=str(log))
    service.wait()
    with log.open("a") as writing:
        writing.write("serving\n")

    assert status.tail(str(log), told["log_cursor"])[0] == ["serving"]


def test_a_pid_file_finds_the_service_unless_it_is_stale(service: Service) -> None:
    service.manager["command"]["pid"] = {"file": "pid"}
    pid = service.act("start")["started_pid"]
    assert pid == service.wait()
    file = service.home / "pid"
    old = time.time() - 3600
    os.utime(file, (old, old))  # written an hour before the process with this number began
    assert command.find(service.manager["command"]) is None
    file.write_text("not a number")
    assert command.find(service.manager["command"]) is None
    file.write_text("999999999")
    assert command.find(service.manager["command"]) is None


def test_inspect_tells_what_runs_and_what_the_files_are(service: Service) -> None:
    service.act("start")
    pid = service.wait()
    path = service.host.file("a.conf", b"A=1")
    found = service.host.call("inspect", manager=service.manager, files=[str(path), "/no/such"], port=service.port)
    process = found["process"]
    assert process["pid"] == pid
    assert process["argv"][1:] == ["server.py", str(service.port)]
    assert process["listens"] == [service.port]
    assert process["environ"]["PATH"]
    assert abs(process["started_at"] - time.time()) < 60
    assert found["port_owner"]["pid"] == pid
    assert found["files"]["/no/such"] == {"exists": False, "resolved": "/no/such"}
    assert found["files"][str(path)]["content"] == "QT0x"
    assert found["files"][str(path)]["readable_by_service"] is True


def test_the_service_runs_without_the_mark_of_the_run(service: Service) -> None:
    service.act("start")
    assert "CHANGECTL_RUN" not in procfs.parse_environ(procfs.read(service.wait(), "environ"))


@pytest.mark.parametrize(("lines", "before"), [(3, 0), (9_000, 2_400), (400_000, 2_400)])
def test_what_stands_before_the_end_of_a_long_log_is_told_whole_and_once(place: Path, lines: int, before: int) -> None:
    log = place / "log"
    log.write_text("".join(f"line {number}\n" for number in range(lines)))
    earlier, latest = status.before_tail(str(log)), status.tail(str(log), None)[0]

    assert len(earlier) >= before
    whole = [*earlier, *latest[1:]] if earlier else latest  # the end begins in the middle of a line
    assert whole == [f"line {number}" for number in range(lines - len(whole), lines)]
    assert len("\n".join(earlier)) <= 2**20 + 100
    assert status.before_tail(str(place / "none")) == []


def test_a_log_is_followed_by_its_cursor_also_over_a_rotation(place: Path) -> None:
    log = place / "log"
    log.write_text("one\ntwo\nhalf")
    lines, cursor = status.tail(str(log), None)
    assert lines == ["one", "two"]
    with log.open("a") as out:
        out.write(" and more\n")
    lines, cursor = status.tail(str(log), cursor)
    assert lines == ["half and more"]
    log.unlink()
    log.write_text("new\n")
    assert status.tail(str(log), cursor)[0] == ["new"]
    log.unlink()
    assert status.tail(str(log), cursor) == ([], cursor)
