"""One healthy service in all its facts; tests change or take away a single thing."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from tests.unit.engines.support import llamacpp_pages, text

from changectl import engines, managers
from changectl.core.caller import CallerSeen
from changectl.core.declared.live_load import LiveLoad
from changectl.core.engine import Page
from changectl.core.leaving import Leaving
from changectl.core.observed import Capture, Hello, Help, HostFacts, Model, Nvml, Observed, Status, UnitVerify
from changectl.core.precheck import NOT_EXPOSED, Seen, Situation, ThreeValues
from changectl.core.trial.power import Power

UNIT = "/etc/systemd/system/chat.service"
ENVIRONMENT = "/etc/chat.env"
STARTED = 1_790_000_000.0
GIB = 1024**3
ENGINE = engines.load("llamacpp")
FACTS = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.attention.head_count": 2,
    "llama.embedding_length": 32,
}


def file(content: str | None = "x", **changed: Any) -> dict[str, Any]:
    encoded = None if content is None else base64.b64encode(content.encode()).decode()
    mtime = int((STARTED - 3600) * 1e9)
    return {"exists": True, "mtime_ns": mtime, "content": encoded, "readable_by_service": True} | changed


def observed(**changed: Any) -> Observed:
    show = {
        "StartLimitBurst": "5",
        "StartLimitIntervalUSec": "10s",
        "TimeoutStopUSec": "1min 30s",
        "Restart": "on-failure",
        "StandardOutput": "journal",
    }
    answer: dict[str, Any] = {
        "manager": {
            "unit": "chat.service",
            "show": show | changed.pop("show", {}),
            "files": [UNIT],
            "env_files": [{"path": ENVIRONMENT, "optional": False}],
            "need_daemon_reload": False,
        },
        "process": {
            "pid": 100,
            "started_at": STARTED,
            "argv": ["/opt/llama-server", "--parallel", "2"],
            "environ": {},
            "tree": [100, 101],
            "listens": [8080],
        },
        "files": {UNIT: file("[Service]\nExecStart=/opt/llama-server --parallel 2\n"), ENVIRONMENT: file("A=1\n")},
        "port_owner": {"pid": 101},
    }
    manager = answer["manager"] | changed.pop("manager", {})
    return Observed.read(answer | {"manager": manager} | changed)


def model(**changed: Any) -> Model:
    mtime = int((STARTED - 86400) * 1e9)
    one = {"path": "m.gguf", "size": 100, "mtime_ns": mtime, "sha256": "aa", "header": "gguf", "facts": FACTS}
    readable = {"uid": 990, "all": True, "not": []}
    return Model.read({"files": [one], "problems": [], "total_bytes": 100, "readable_by": readable} | changed)


def status(**changed: Any) -> Status:
    return Status.read({"active": "active", "restarts": 0, "process": {"pid": 100, "start_ticks": 5}} | changed)


def host(**changed: Any) -> HostFacts:
    disks = {"/var/lib/changectl": {"free": 10 * GIB, "read_only": False}, UNIT: {"free": GIB, "read_only": False}}
    memory = {"total": 16 * GIB, "available": 8 * GIB}
    return HostFacts.read({"disks": disks, "memory": memory, "gpu": {"present": False}} | changed)


def gpus(free: int = 10 * GIB, used: int = 70 * GIB) -> Nvml:
    card = {"index": 0, "memory_total": 80 * GIB, "memory_used": used, "memory_free": free}
    return Nvml.read({"gpus": [card], "driver": "570.1"})


def situation(**changed: Any) -> Situation:
    setting = ENGINE.setting("parallel")
    seen = ThreeValues("parallel", Seen("2"), Seen("2"), Seen("2"), setting)
    healthy = Situation(
        service="chat",
        endpoint="http://127.0.0.1:8080",
        expected_model="tiny.gguf",
        model_path="/srv/m.gguf",
        engine=ENGINE,
        manager=managers.load("systemd"),
        name="parallel",
        setting=setting,
        to="4",
        edited_files=(UNIT,),
        values=(seen, ThreeValues("threads", Seen("1"), Seen("1"), NOT_EXPOSED, ENGINE.setting("threads"))),
        settings_before={"parallel": "2", "ctx-size": "512", "batch-size": "256", "ubatch-size": "256"},
        settings_after={"parallel": "4", "ctx-size": "512", "batch-size": "256", "ubatch-size": "256"},
        starts_needed=3,
        hello=Hello.read({"python": "3.11.2", "kubernetes": False, "systemd": True}),
        host=host(),
        observed=observed(),
        status=status(),
        status_earlier=status(),
        pages=llamacpp_pages(),
        nvml=Nvml.read({"none": "NVML does not answer: library not found"}),
        help=Help.read({"text": text("llamacpp", "help.txt"), "exit_status": 0}),
        unit_verify=UnitVerify(before=["old warning"], after=["old warning"]),
        caller=CallerSeen("gpu1", own=True),
        leaving=Leaving(),
        live=LiveLoad("its users may feel it"),
        power=Power(4),
        capture=Capture.read({"restorable": True, "problems": [], "files": {UNIT: {"sha256": "aa"}}}),
        model=model(),
    )
    return replace(healthy, **changed)


def page(status_code: int, body: str = "") -> Page:
    return Page(status=status_code, body=body)
