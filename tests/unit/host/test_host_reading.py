"""The calls that only look: HTTP, specification, GPUs, help, units."""

from __future__ import annotations

import base64
import http.server
import os
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, dispatch, host, unit_verify


def test_the_driver_tells_what_a_card_is() -> None:
    told = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 77\nGPU UUID: \t GPU-1\n"
    assert host.gpu_model(told) == "NVIDIA H200"
    assert host.gpu_model("IRQ: 77\n") == ""


class Pages(http.server.BaseHTTPRequestHandler):
    """A small engine."""

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/health")
            self.end_headers()
            return
        if self.path == "/slow":
            time.sleep(1)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{self.headers.get('Authorization')}".encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def ask(**request: Any) -> dict[str, Any]:
    return dict(dispatch("probe", {"requests": [{"name": "x", "method": "GET", "timeout": 5, **request}]})["x"])


def test_pages_are_fetched_with_headers_and_bodies(address: str) -> None:
    assert ask(url=f"{address}/a?b=c", headers={"Authorization": "Bearer t"})["body"] == "Bearer t"
    answer = ask(url=f"{address}/v1", method="POST", body='{"a": "é"}')
    assert (answer["status"], answer["body"], answer["error"]) == (503, '{"a": "é"}', None)


def test_redirects_are_shown_and_not_followed(address: str) -> None:
    answer = ask(url=f"{address}/moved")
    assert (answer["status"], answer["headers"]["location"]) == (302, "/health")


def test_what_goes_wrong_stands_in_the_answer(address: str, free_port: int) -> None:
    assert ask(url=f"http://127.0.0.1:{free_port}/")["error"] == "connection refused"
    assert ask(url=f"{address}/slow", timeout=0.2)["error"] == "timed out"
    assert ask(url="file:///etc/passwd")["error"]
    assert ask(url="http://127.0.0.1:99999/")["error"]


def test_the_hosts_specification_names_what_is_missing() -> None:
    found = dispatch("host", {"paths": ["/", "/no/such/folder"]})
    assert found["cpus"]["count"] >= 1
    assert found["memory"]["available"] > 0
    assert found["network"]["lo"]["errors"]["rx"] is not None
    assert found["disks"]["/no/such/folder"]["total"] == found["disks"]["/"]["total"]
    assert isinstance(found["missing"], dict)
    assert isinstance(found["gpu"]["present"], bool)


def test_memory_figures_are_bytes() -> None:
    assert host.parse_meminfo("MemTotal:  16 kB\nHugePages_Total:   3\nnonsense\n") == {
        "MemTotal": 16384,
        "HugePages_Total": 3,
    }


LIBRARY = """
class NVMLError(Exception): pass
def nvmlInit():
    {init}
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlSystemGetDriverVersion(): return "550.1"
def nvmlSystemGetCudaDriverVersion(): return 12040
class M: total, used, free = 10, 4, 6
def nvmlDeviceGetMemoryInfo(handle): return M
def __getattr__(name):
    def ask(*values): raise NVMLError("Not Supported")
    return ask
"""


def nvml(init: str) -> dict[str, Any]:
    # A module's own __getattr__ answers questions that this stand-in does not know.
    source = base64.b64encode(zlib.compress(LIBRARY.format(init=init).encode())).decode()
    return dispatch("nvml", {"source": source})


def test_gpus_are_told_and_unsupported_questions_stay_unknown() -> None:
    found = nvml("pass")
    assert found["driver"] == "550.1"
    assert (found["gpus"][0]["memory_free"], found["gpus"][0]["temperature"]) == (6, None)


def test_no_gpu_library_is_a_clean_answer() -> None:
    assert "Library not found" in nvml("raise NVMLError('NVML Shared Library not found')")["none"]
    with pytest.raises(Failure):
        dispatch("nvml", {"source": "!"})


def test_help_is_the_programs_own_and_bounded_in_time() -> None:
    argv = [sys.executable, "-c", "import os,sys; print('--max-num-seqs', os.geteuid()); sys.exit(3)"]
    assert dispatch("help", {"argv": argv}) == {"text": f"--max-num-seqs {os.geteuid()}\n", "exit_status": 3}
    with pytest.raises(Failure) as caught:
        dispatch("help", {"argv": [sys.executable, "-c", "import time; time.sleep(60)"], "timeout": 0.3})
    assert caught.value.reason == "timed_out"
    with pytest.raises(Failure) as caught:
        dispatch("help", {"argv": ["/no/such"]})
    assert caught.value.reason == "no_such_program"


def test_help_runs_with_the_services_variables_but_a_home_of_its_own() -> None:
    argv = [sys.executable, "-c", "import os; print(os.environ['LIBRARIES'], os.environ['HOME'])"]

    said = dispatch("help", {"argv": argv, "environ": {"LIBRARIES": "/opt/x", "HOME": "/srv/chat"}})["text"].split()

    assert said[0] == "/opt/x"
    assert said[1] != "/srv/chat"
    assert not Path(said[1]).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_help_runs_as_the_services_user() -> None:
    found = dispatch("help", {"argv": ["/usr/bin/id", "-u"], "user": "nobody"})
    assert found["text"].strip() not in ("", "0")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_only_warnings_about_the_unit_itself_are_told() -> None:
    good = b"[Service]\nExecStart=/bin/true\n"
    bad = b"[Service]\nExecStart=/bin/true\nNoSuchKey=1\n"
    twice = {"/e/x.service": good, "/e/x.service.d/1.conf": b"[Service]\nExecStart=/bin/false\n"}
    assert unit_verify._warnings("x.service", {"/e/x.service": good}) == []
    assert any("NoSuchKey" in line for line in unit_verify._warnings("x.service", {"/e/x.service": bad}))
    assert any("ExecStart" in line for line in unit_verify._warnings("x.service", twice))


def test_evidence_names_what_it_does_not_have() -> None:
    manager = {"command": {"start": ["x"], "pid": {"port": 1}}}
    found = dispatch("evidence", {"manager": manager, "since": 0})
    assert "MemTotal" in found["host"]["meminfo"]
    assert "log" in found["missing"]


def test_the_real_library_loads_from_its_source() -> None:
    import pynvml

    source = base64.b64encode(zlib.compress(Path(pynvml.__file__).read_bytes())).decode()
    found = dispatch("nvml", {"source": source})
    assert found.get("gpus") or found["none"]
