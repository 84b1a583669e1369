"""Looks at host and service while a load runs: cheap, complete, and over by themselves."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from changectl_host import dispatch
from changectl_host.failure import Failure
from changectl_host.sampled_service import Service

BUSY = "import threading, time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass\n"


@pytest.fixture
def service() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def managed(process: subprocess.Popen[bytes], tmp_path: Any) -> dict[str, Any]:
    (tmp_path / "pid").write_text(str(process.pid))
    return {"command": {"start": ["x"], "pid": {"file": str(tmp_path / "pid")}}}


def taken(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in zlib.decompress(base64.b64decode(answer["looks"])).splitlines()]


def sampled(seconds: float, **args: Any) -> dict[str, Any]:
    dispatch("sample", {"action": "start", "interval": 0.1, "seconds": 30, **args})
    time.sleep(seconds)
    return dispatch("sample", {"action": "collect"})


def test_a_look_holds_the_host_and_names_what_cannot_be_read() -> None:
    answer = dispatch("sample", {"action": "once"})

    assert {"cores", "queue", "memory", "vmstat", "disks", "network", "tcp"} <= {*answer["look"], *answer["missing"]}
    assert answer["missing"]["gpus"] == "no NVML bindings were brought to this host"
    assert "process" not in answer["look"]


def test_a_busy_thread_of_the_service_is_seen_with_its_name(service: subprocess.Popen[bytes], tmp_path: Any) -> None:
    answer = sampled(0.5, manager=managed(service, tmp_path))
    first, last = taken(answer)[0], taken(answer)[-1]

    assert last["process"][0] == service.pid
    assert last["rss"] > 0
    thread = str(service.pid)
    assert answer["threads"][thread].startswith("python")
    assert last["threads"][thread][0] >= first["threads"][thread][0]
    assert last["threads"][thread][0] > 0


def test_a_service_that_ends_is_no_process_any_more(service: subprocess.Popen[bytes], tmp_path: Any) -> None:
    looked = Service(managed(service, tmp_path))

    assert looked.look({})["process"][0] == service.pid
    service.kill()
    service.wait()
    assert looked.look({}) == {"process": None}


def test_the_engines_page_is_kept_by_the_names_that_were_asked_for() -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"# HELP a b\na_gauge 3\nb_bucket 4\n")

        def log_message(self, *words: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        page = {"url": f"http://127.0.0.1:{server.server_port}/metrics"}
        look = dispatch("sample", {"action": "once", "page": page, "series": ["a_gauge"]})["look"]
    finally:
        server.shutdown()
        server.server_close()

    assert look["page"] == {"status": 200, "body": "a_gauge 3\n"}


def test_an_engine_that_does_not_answer_is_no_zero() -> None:
    look = dispatch("sample", {"action": "once", "page": {"url": "http://127.0.0.1:9/metrics"}})["look"]

    assert look["page"] == {"status": None, "error": "connection refused"}


def test_it_ends_by_itself_after_its_time() -> None:
    dispatch("sample", {"action": "start", "interval": 0.1, "seconds": 0.2})
    time.sleep(1.0)

    assert 2 <= dispatch("sample", {"action": "collect"})["count"] <= 4


def test_a_second_start_ends_the_first_and_a_second_collect_has_nothing() -> None:
    dispatch("sample", {"action": "start", "interval": 60, "seconds": 30})
    assert sampled(0.05)["count"] >= 2
    with pytest.raises(Failure, match="nothing is being sampled"):
        dispatch("sample", {"action": "collect"})


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(Failure, match="once, start or collect"):
        dispatch("sample", {"action": "stop"})


def test_broken_nvml_bindings_cost_the_gpu_figures_alone() -> None:
    source = base64.b64encode(zlib.compress(b"raise SystemExit(3)")).decode()
    answer = dispatch("sample", {"action": "once", "nvml": source})

    assert "NVML cannot be asked" in answer["missing"]["gpus"]
    assert answer["look"]["cores"]


def test_gpus_are_read_through_bindings_that_stay_open() -> None:
    stand_in = (
        "class NVMLError(Exception): pass\n"
        "def nvmlInit(): pass\n"
        "def nvmlShutdown(): pass\n"
        "def nvmlDeviceGetCount(): return 1\n"
        "def nvmlDeviceGetHandleByIndex(index): return index\n"
        "class Use: gpu, memory = 71, 20\n"
        "def nvmlDeviceGetUtilizationRates(handle): return Use\n"
    )
    answer = sampled(0.25, nvml=base64.b64encode(zlib.compress(stand_in.encode())).decode())

    assert all(look["gpus"][0]["utilisation_gpu"] == 71 for look in taken(answer))
    assert "gpus" not in answer["missing"]


def test_a_look_costs_less_than_a_hundredth_of_a_core_at_one_a_second(
    service: subprocess.Popen[bytes], tmp_path: Any
) -> None:
    answer = sampled(2.0, manager=managed(service, tmp_path))

    assert answer["count"] >= 10
    assert answer["cpu_seconds"] / answer["count"] < 0.01
