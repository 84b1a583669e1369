"""The dead-man on a real host with systemd: it acts with nobody in contact, and over a power cut."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.lab.desk import wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

from changectl_host import program_zip

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
PROGRAM = "/root/host-program.pyz"
CALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from changectl_host import Failure, dispatch
try:
    print(json.dumps({"ok": dispatch(sys.argv[2], json.loads(sys.argv[3]))}))
except Failure as failure:
    print(json.dumps({"error": failure.as_dict()}))
"""
SECONDS = 6.0


@dataclass
class Change:
    """One change of one file of a service, by the host program's own calls and no controller."""

    host: LabHost
    service: LlamaService
    path: str
    daemon_reload: bool
    nonce: str = "n1"
    state_dir: str | None = None

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        common = {"run": "R-1", "generation": 1, "nonce": self.nonce, "state_dir": self.state_dir}
        done = self.host.run(["python3", "-c", CALL, PROGRAM, name, json.dumps({**common, **args})])
        answer = json.loads(done.stdout)
        assert "ok" in answer, answer
        return dict(answer["ok"])

    def lease(self, seconds: float) -> dict[str, Any]:
        return self.call("lease", seconds=seconds, owner="kim", controller="desk-1")

    def make(self, old: str, new: str) -> dict[str, Any]:
        """Save, arm, write and restart as one change; returns what arming answered."""
        self.host.write_file(PROGRAM, program_zip())
        before = self.host.read_file(self.path)
        after = before.replace(old.encode(), new.encode())
        assert before != after
        manager = {"systemd": {"unit": self.service.unit}}
        settings = {"daemon_reload": self.daemon_reload, "stop_timeout": 20}
        self.lease(300)
        self.call("capture", files=[self.path], manager=manager, process=True)
        digest = self.call("stage", sha256=sha256(after), content=base64.b64encode(after).decode()) and sha256(after)
        arm = {"nonce": self.nonce, "only": [self.path], "manager": manager, "service": settings}
        answer = self.call("change", writes=[{"path": self.path, "expect": sha256(before), "staged": digest}],
                           manager=manager, service={"action": "restart", **settings}, arm=arm)  # fmt: skip
        self.service.wait_ready()
        assert self.host.read_file(self.path) == after
        return dict(answer["arm"])

    def standing(self) -> dict[str, Any]:
        return self.call("standing")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stale_units(host: LabHost) -> list[str]:
    """Units whose files were edited and not read since."""
    shown = host.run(["systemctl", "show", "--all", "--property=Id,NeedDaemonReload", "*"]).stdout
    blocks = [dict(line.split("=", 1) for line in block.splitlines()) for block in shown.split("\n\n") if block.strip()]
    return [block["Id"] for block in blocks if block["NeedDaemonReload"] == "yes"]


def ours(host: LabHost) -> list[str]:
    """Units of ours that systemd or its folders know."""
    listed = host.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "changectl-*"]).stdout.split("\n")
    found = host.run(["find", "/etc/systemd", "/run/systemd/transient", "-name", "changectl-*"], check=False).stdout
    return [line for line in [*listed, *found.split("\n")] if line.strip()]


def starts(service: LlamaService) -> int:
    """How often systemd has started the service since this boot."""
    words = ["journalctl", "--boot", "--no-pager", "--output=cat", f"--unit={service.unit}", "_PID=1"]
    return service.host.run(words).stdout.count("Started ")


def threads_http(service: LlamaService) -> str:
    """The variable as the running process has it."""
    environ = service.host.read_file(f"/proc/{service.pid()}/environ").decode().split("\0")
    return next(item.split("=", 1)[1] for item in environ if item.startswith("LLAMA_ARG_THREADS_HTTP="))


def test_nobody_contacts_the_host_again_and_the_saved_configuration_runs(
    h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    saved = service.stat(service.env_file)
    # Somebody's edit that is not loaded yet has to stay so: it is not ours to put into force.
    h1.write_file("/etc/systemd/system/pending.service", "[Service]\nExecStart=/bin/sleep 1000\n")
    h1.run(["systemctl", "daemon-reload"])
    h1.run(["systemctl", "start", "pending.service"])
    h1.write_file("/etc/systemd/system/pending.service", "[Service]\nExecStart=/bin/sleep 2000\n")
    assert stale_units(h1) == ["pending.service"]
    change = Change(h1, service, service.env_target, daemon_reload=False)
    armed = change.make("LLAMA_ARG_THREADS_HTTP=4", "LLAMA_ARG_THREADS_HTTP=3")
    assert (armed["keeper"], armed["reboot_safe"], armed["why"]) == ("systemd", True, "")
    assert threads_http(service) == "3"
    pid, before = service.pid(), starts(service)
    deadline = change.standing()["boot_seconds"] + change.lease(SECONDS)["left"]

    time.sleep(SECONDS + 4)

    service.wait_ready()
    assert service.stat(service.env_file) == saved
    assert threads_http(service) == "4"
    assert service.pid() != pid
    assert starts(service) == before + 1
    now = change.standing()
    assert (now["fired"]["by"], now["fired"]["outcome"], now["armed"]) == ("deadman", "restored", None)
    assert -0.5 < now["fired"]["boot_seconds"] - deadline < 1
    wait_for(lambda: not ours(h1), "all units of ours are gone", 10)
    assert stale_units(h1) == ["pending.service"]
    h1.run(["systemctl", "stop", "pending.service"])
    h1.run(["rm", "/etc/systemd/system/pending.service"])
    h1.run(["systemctl", "daemon-reload"])


def test_a_sleeper_that_is_killed_is_started_again_and_a_kept_change_stays(
    h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    change = Change(h1, service, service.env_target, daemon_reload=False)
    change.make("LLAMA_ARG_THREADS_HTTP=4", "LLAMA_ARG_THREADS_HTTP=3")
    first = change.standing()["armed"]["keeper"]
    for signal in ("-KILL", "-TERM"):
        [unit] = [line.split()[0] for line in ours(h1) if line.startswith("changectl-deadman-")]
        pid = h1.run(["systemctl", "show", "--value", "--property=MainPID", unit]).stdout.strip()
        h1.run(["kill", signal, pid])
        shown = ["systemctl", "show", "--value", "--property=MainPID", unit]
        wait_for(lambda shown=shown, pid=pid: h1.run(shown).stdout.strip() not in ("0", pid), "it is back", 10)
        wait_for(lambda: change.standing()["keeper_running"], "somebody keeps watch", 10)
    assert first["unit"] == unit
    left = {item["what"]: item for item in change.call("leftovers")["items"]}
    assert {"run", "lease", "boot_unit", "sleeper", "sleeper_unit"} <= set(left)
    assert not any(item["removable"] for item in left.values())
    assert {item["run"] for item in left.values()} == {"R-1"}
    assert stale_units(h1) == []

    assert change.call("disarm", outcome="kept") == {"disarmed": True, "changed": True, "left_behind": []}

    wait_for(lambda: not ours(h1), "all units of ours are gone", 10)
    assert change.call("release") == {"released": True}
    assert threads_http(service) == "3"
    assert stale_units(h1) == []
    h1.reboot()
    service.wait_ready()
    assert threads_http(service) == "3"


def test_after_a_power_cut_the_engine_starts_once_and_on_the_saved_configuration(
    h2: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h2)
    saved = service.stat(service.unit_file)
    change = Change(h2, service, service.unit_file, daemon_reload=True)
    assert change.make("--ctx-size 4096", "--ctx-size 2048")["reboot_safe"]
    assert "2048" in service.argv()
    h2.run(["sync"])

    h2.kill()
    h2.boot()

    service.wait_ready()
    assert service.stat(service.unit_file) == saved
    assert "4096" in service.argv()
    assert starts(service) == 1
    now = change.standing()
    assert (now["fired"]["by"], now["fired"]["outcome"]) == ("boot", "restored")
    assert (now["armed"], now["lease"]["live"], now["generation"]) == (None, False, 2)
    assert stale_units(h2) == []
    assert ours(h2) == []


def test_a_power_cut_before_anything_was_written_changes_nothing_whatever_the_folder_is_called(
    h2: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h2)
    saved = service.stat(service.env_file)
    h2.write_file(PROGRAM, program_zip())
    folder = '/var/lib/odd %n "q" $HOME \\x'
    change = Change(h2, service, service.env_target, daemon_reload=False, state_dir=folder)
    change.lease(300)
    change.call("capture", files=[service.env_target], manager={"systemd": {"unit": service.unit}}, process=True)
    assert change.call("arm", only=[service.env_target])["reboot_safe"]

    h2.kill()
    h2.boot()

    service.wait_ready()
    assert service.stat(service.env_file) == saved
    assert (starts(service), change.standing()["fired"]["outcome"]) == (1, "nothing_to_do")
    assert ours(h2) == []
    h2.run(["rm", "-rf", "--", folder])


def test_a_service_that_the_dead_man_starts_by_a_command_outlives_its_unit(h1: LabHost) -> None:
    h1.write_file(PROGRAM, program_zip())
    h1.write_file("/srv/plain/settings", "old\n")
    start = ["python3", "-m", "http.server", "8077"]
    manager = {"command": {"start": start, "cwd": "/srv/plain", "pid": {"port": 8077}}}
    call = Change(h1, LlamaService(h1), "/srv/plain/settings", daemon_reload=False).call
    new = base64.b64encode(b"new\n").decode()
    call("lease", seconds=300)
    call("service", manager=manager, action="start")
    call("capture", files=["/srv/plain/settings"], manager=manager, process=True)
    call("stage", sha256=sha256(b"new\n"), content=new)
    settings = {"stop_timeout": 10, "environment_from_snapshot": True}
    call("arm", only=["/srv/plain/settings"], manager=manager, service=settings)
    writes = [{"path": "/srv/plain/settings", "expect": sha256(b"old\n"), "staged": sha256(b"new\n")}]
    call("change", writes=writes, manager=manager, service={"action": "restart", **settings})

    call("lease", seconds=2)

    try:
        wait_for(lambda: (call("standing")["fired"] or {}).get("state") == "done", "the dead-man is done", 30)
        wait_for(lambda: not any("deadman" in line and "running" in line for line in ours(h1)), "its unit ended", 10)
        assert h1.read_file("/srv/plain/settings") == b"old\n"
        found = call("inspect", manager=manager, files=[], port=8077)
        assert found["process"]["listens"] == [8077]
        # A unit that still holds the service is in nobody's way: the next change is armed by one of its own.
        call("lease", seconds=300, generation=9, nonce="n9")
        assert call("arm", generation=9, nonce="n9", only=["/srv/plain/settings"])["keeper"] == "systemd"
        assert call("disarm", generation=9, nonce="n9", outcome="accepted")["left_behind"] == []
    finally:
        h1.run(["sh", "-c", "kill $(ss -ltnpH 'sport = :8077' | grep -o 'pid=[0-9]*' | cut -d= -f2)"], check=False)
        h1.run(["rm", "-rf", "/srv/plain", "/var/lib/changectl"])
    wait_for(lambda: not ours(h1), "all units of ours are gone", 10)
