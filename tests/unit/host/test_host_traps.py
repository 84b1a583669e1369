"""What may spoil a stop or a start: something that outlives the stop is waited for, and named when it does not go."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, command, gpu, procfs

SERVER = """
import http.server, os, signal, subprocess, sys, time
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
def born(*_):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session="apart" in sys.argv)
    os._exit(0)
if "late" in sys.argv:
    signal.signal(signal.SIGTERM, born)
if "worker" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
server.serve_forever()
"""
#: Shares the service's port for some seconds after it ended, from a session of its own and as nobody's child.
HOLDER = """
import os, socket, sys, time
if os.fork():
    os._exit(0)
os.setsid()
end = time.monotonic() + float(sys.argv[2])
while True:
    try:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", int(sys.argv[1])))
        held.listen()
        break
    except OSError:
        held.close()
        time.sleep(0.002)
time.sleep(end - time.monotonic())
"""
BINDINGS = """
import json
class NVMLError(Exception): pass
class Thing:
    def __init__(self, **facts): self.__dict__.update(facts)
def told(): return json.load(open({path!r}))
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetUUID(handle): return "GPU-1"
def nvmlDeviceGetMemoryInfo(handle): return Thing(total=80 << 30, used=told()["used"], free=0)
def nvmlDeviceGetComputeRunningProcesses(handle):
    return [Thing(pid=pid, usedGpuMemory=used) for pid, used in told()["processes"]]
def __getattr__(name):
    def ask(*values): raise NVMLError("Not Supported")
    return ask
"""


class Service:
    """A service with a configuration file that this run has changed."""

    def __init__(self, host: Any, port: int, *words: str, nvml: str | None = None) -> None:
        self.host, self.port, self.home = host, port, host.folder / "srv"
        self.home.mkdir()
        (self.home / "server.py").write_text(SERVER)
        start = [sys.executable, "server.py", str(port), *words]
        self.manager = {"command": {"start": start, "cwd": str(self.home), "pid": {"port": port}}}
        self.path = host.file("a.conf", b"old")
        self.act("start")
        self.wait()
        host.call("capture", files=[str(self.path)], manager=self.manager, process=True, nvml=nvml)
        host.write(self.path, b"old", b"new")

    def act(self, action: str) -> dict[str, Any]:
        return dict(self.host.call("service", manager=self.manager, action=action, stop_timeout=3))

    def back(self) -> dict[str, Any]:
        settings = {"stop_timeout": 3, "environment_from_snapshot": True}
        return dict(self.host.call("bring_back", manager=self.manager, service=settings, only=[str(self.path)]))

    def wait(self) -> int:
        return int(self.host.wait(lambda: command.find(self.manager["command"])))

    def ours(self) -> list[int]:
        places = {item.pid: procfs.link(item.pid, "cwd") or "" for item in procfs.everyone()}
        return sorted(pid for pid, place in places.items() if place.startswith(str(self.home)))


@pytest.fixture
def made(host: Any, free_port: int) -> Iterator[list[Service]]:
    services: list[Service] = []
    yield services
    for service in services:
        for pid in service.ours():
            os.kill(pid, signal.SIGKILL)


# -- the process tree ---------------------------------------------------------------------------------------------
def test_what_the_service_starts_while_it_is_stopped_goes_with_it(
    host: Any, free_port: int, made: list[Service]
) -> None:
    made.append(service := Service(host, free_port, "late"))
    assert service.act("stop")["changed"]
    assert service.ours() == []


def test_workers_that_outlive_a_killed_parent_are_gone_before_the_next_start(
    host: Any, free_port: int, made: list[Service]
) -> None:
    made.append(service := Service(host, free_port, "worker"))
    parent = service.wait()
    os.kill(parent, signal.SIGKILL)
    host.wait(lambda: parent not in service.ours())
    [orphan] = service.ours()
    assert service.back()["files"] == {str(service.path): "restored"}
    assert orphan not in service.ours()
    assert service.wait() != parent


# -- the port -----------------------------------------------------------------------------------------------------
def holder(service: Service, seconds: float) -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(HOLDER), str(service.port), str(seconds)], check=True,
                   cwd=service.home)  # fmt: skip


def test_a_port_that_is_free_a_moment_after_the_stop_is_waited_for(
    host: Any, free_port: int, made: list[Service]
) -> None:
    made.append(service := Service(host, free_port))
    first = service.wait()
    holder(service, 2.5)
    begun = time.monotonic()
    answer = service.back()
    assert answer["files"] == {str(service.path): "restored"}
    assert time.monotonic() - begun > 1
    assert service.wait() not in (first, None)


def test_a_port_that_stays_taken_is_named_with_who_has_it_and_the_files_are_back_all_the_same(
    host: Any, free_port: int, made: list[Service]
) -> None:
    made.append(service := Service(host, free_port))
    holder(service, 60)
    with pytest.raises(Failure) as caught:
        service.back()
    assert (caught.value.reason, caught.value.details["ports"]) == ("still_held", [free_port])
    [owner] = caught.value.details["pids"]
    assert f"ports [{free_port}] are still listened on, by {owner} (" in caught.value.message
    assert "the saved files are in place" in str(caught.value)
    assert caught.value.details["files"] == {str(service.path): "restored"}
    assert service.path.read_bytes() == b"old"


# -- GPU memory ---------------------------------------------------------------------------------------------------
class Card:
    """One GPU as NVML tells of it: what its bindings read from a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gpu.json"
        self.tell([], 1 << 30)

    def tell(self, processes: list[list[int]], used: int) -> None:
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps({"processes": processes, "used": used}))
        written.rename(self.path)

    def bindings(self) -> str:
        return base64.b64encode(zlib.compress(BINDINGS.format(path=str(self.path)).encode())).decode()


@pytest.fixture
def on_gpu(host: Any, free_port: int, made: list[Service]) -> tuple[Service, Card]:
    """A service that holds 60 GiB of a GPU, of which a stranger has 8 and the driver 1."""
    card = Card(host.folder)
    made.append(service := Service(host, free_port, nvml=card.bindings()))
    card.tell([[service.wait(), 60 << 30], [1, 8 << 30]], 69 << 30)
    return service, card


def gone(service: Service) -> None:
    service.host.wait(lambda: service.ours() == [])


def test_gpu_memory_that_comes_back_a_moment_after_the_stop_is_waited_for(on_gpu: tuple[Service, Card]) -> None:
    service, card = on_gpu
    free_at: list[float] = []

    def driver() -> None:
        gone(service)
        time.sleep(1)
        free_at.append(time.monotonic())
        card.tell([[1, 8 << 30]], 9 << 30)

    thread = threading.Thread(target=driver)
    thread.start()
    service.act("stop")
    assert free_at
    thread.join()


def test_gpu_memory_that_stays_held_is_named_and_the_files_are_back_all_the_same(on_gpu: tuple[Service, Card]) -> None:
    service, _ = on_gpu
    pid = service.wait()
    with pytest.raises(
        Failure, match=rf"GPU 0 still holds 60\.0 GiB of the stopped service for process {pid}"
    ) as caught:
        service.back()
    assert caught.value.reason == "still_held"
    assert caught.value.details["gpus"] == [{"index": 0, "pids": [pid], "bytes": 60 << 30}]
    assert caught.value.details["started"] is True
    assert service.path.read_bytes() == b"old"


def told(processes: list[tuple[int, int | None]], used: int | None) -> dict[str, Any]:
    """An answer of the call `nvml`, as far as it matters here."""
    listed = [{"pid": pid, "memory_used": memory} for pid, memory in processes]
    return {"gpus": [{"index": 0, "uuid": "GPU-1", "memory_used": used, "processes": listed}], "driver": "550.54"}


BEFORE = told([(70, 60), (9, 8)], 69)


@pytest.mark.parametrize(
    ("now", "held"),
    [
        (told([(9, 8)], 9), []),
        (told([(70, 60), (9, 8)], 69), [{"index": 0, "pids": [70], "bytes": 60}]),
        (told([(9, 8)], 69), [{"index": 0, "pids": [], "bytes": 60}]),  # a context that hangs: nobody's, and not free
        (told([(9, 60)], 61), []),  # a stranger takes more
        (told([(80, 50), (9, 8)], 59), []),  # somebody else is quick to use what came free
        (told([(70, None), (9, 8)], None), [{"index": 0, "pids": [70], "bytes": 0}]),  # a driver that tells no figures
        ({"none": "NVML does not answer"}, []),
        ({"gpus": []}, []),
    ],
)
def test_of_a_gpu_only_what_the_service_had_is_held_against_it(now: dict[str, Any], held: list[Any]) -> None:
    assert gpu.held(BEFORE, now, [70, 71]) == held
    assert gpu.held(told([(9, 8)], 9), now, [70, 71]) == []  # it had no part of this GPU
    assert gpu.held({"none": "no NVIDIA driver on this host"}, now, [70, 71]) == []


@pytest.mark.parametrize("bindings", ["!", base64.b64encode(zlib.compress(b"raise SystemExit(1)")).decode()])
def test_bindings_that_do_not_work_stop_nothing(host: Any, free_port: int, made: list[Service], bindings: str) -> None:
    made.append(service := Service(host, free_port, nvml=bindings))
    assert service.act("stop")["changed"]


# -- "active" is no evidence --------------------------------------------------------------------------------------
def test_a_service_that_is_active_and_dies_two_seconds_later_is_told_as_it_is_each_time(host: Any) -> None:
    pid_file = host.folder / "pid"
    dying = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(2); print('no room')"
    manager = {"command": {"start": [sys.executable, "-c", dying], "pid": {"file": str(pid_file)}}}
    started = host.call("service", manager=manager, action="start")
    assert started["started_pid"]
    first = host.call("status", manager=manager)
    assert (first["active"], first["process"]["pid"]) == ("active", started["started_pid"])
    time.sleep(2.2)
    then = host.call("status", manager=manager, log_file=started["log_file"])
    assert (then["active"], then["process"], then["log"]) == ("failed", None, ["no room"])
