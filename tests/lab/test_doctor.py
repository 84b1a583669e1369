"""`changectl doctor` on real hosts over ssh: with systemd, with a sudo that asks, and with a full disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import write_inventory
from tests.lab.sudo_user import sudo_user

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
STATE = "/var/lib/changectl"
RULES = "/etc/sudoers.d/zz-doctor"


def look(desk: Desk, *hosts: LabHost, user: str = "ops", code: int, **variables: Any) -> dict[str, Any]:
    """Look at hosts of the lab; returns what was found of each, by name."""
    desk.home.mkdir(parents=True, exist_ok=True)
    write_inventory(desk.folder, hosts, user=user, variables=variables)
    document = desk.run("doctor", "-i", "hosts.yml", "--json").expect(code).document
    return {
        one["host"]: {"proof": one["proof"], **{check["name"]: check for check in one["checks"]}}
        for one in document["hosts"]
    }


def left(host: LabHost) -> str:
    """Everything of a doctor that is still there, as a shell names it."""
    script = (
        f"ls -d {STATE}/runs/doctor-* {STATE}/.changectl-doctor-* {STATE}/lease.json 2>/dev/null; "
        "ls /etc/systemd/system/changectl-boot.service 2>/dev/null; "
        "systemctl list-units --all --plain --no-legend 'changectl-*'; pgrep -af '[p]rogram.pyz'; true"
    )
    return host.run(["sh", "-c", script]).stdout


def test_sound_hosts_bring_themselves_back_under_systemd_and_nothing_stays(
    desk: Desk, h1: LabHost, h2: LabHost
) -> None:
    seen = look(desk, h1, h2, code=0)

    for host in (h1, h2):
        found = seen[host.name]
        assert (found["proof"]["state"], found["proof"]["keeper"]) == ("proven", "systemd")
        assert found["proof"]["reboot_safe"] is True
        assert 0 <= found["proof"]["late_seconds"] < 1
        assert (found["dead_man"]["state"], found["systemd"]["state"]) == ("ok", "ok"), found
        assert found["sudo"]["figure"] == "root through sudo, nothing was asked"
        assert found["host_key"]["state"] == found["same_python"]["state"] == "ok"
        assert left(host) == ""


def test_a_sudo_that_asks_is_named_and_nothing_is_begun(desk: Desk, h1: LabHost) -> None:
    with sudo_user(h1, "sudo asks me: 51$f") as user:
        found = look(desk, h1, user=user, code=3)["h1"]

    assert (found["reachable"]["state"], found["python"]["state"]) == ("ok", "ok")
    assert found["sudo"]["state"] == "failed"
    assert "password is required" in found["sudo"]["figure"]
    assert "-K" in found["sudo"]["todo"]
    assert (found["dead_man"]["state"], found["dead_man"]["because"]) == ("unknown", "sudo")
    assert left(h1) == ""


def test_a_sudo_that_wants_a_terminal_is_told_from_one_that_wants_a_password(desk: Desk, h1: LabHost) -> None:
    h1.write_file(RULES, "Defaults:ops requiretty\n", mode="0440")
    try:
        found = look(desk, h1, code=3)["h1"]
    finally:
        h1.run(["rm", "-f", RULES])

    assert found["sudo"]["state"] == "failed"
    assert "!requiretty" in found["sudo"]["todo"], found["sudo"]


@contextmanager
def full_state_folder(host: LabHost) -> Iterator[None]:
    """Let the state folder lie on a small file system that others have filled."""
    host.run(["mkdir", "-p", "-m", "0700", STATE])
    host.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", STATE])
    host.run(["sh", "-c", f"cat /dev/zero > {STATE}/others"], check=False)
    try:
        yield
    finally:
        host.run(["umount", STATE])


def test_a_full_state_folder_is_named_and_nothing_is_begun(desk: Desk, h1: LabHost) -> None:
    with full_state_folder(h1):
        found = look(desk, h1, code=3)["h1"]
        assert left(h1) == ""

    assert (found["state_folder"]["state"], found["room"]["state"]) == ("failed", "failed")
    assert "no space is left" in found["state_folder"]["figure"]
    assert found["dead_man"]["state"] == "failed"
    assert (found["sudo"]["state"], found["systemd"]["state"]) == ("ok", "ok")


def test_an_edited_unit_and_a_host_that_does_not_answer_are_told(desk: Desk, h1: LabHost, h2: LabHost) -> None:
    unit = "/etc/systemd/system/edited.service"
    h1.write_file(unit, "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n")
    h1.run(["systemctl", "daemon-reload"])
    h1.run(["systemctl", "start", "edited.service"])
    h1.write_file(unit, "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true now\n")
    h2.cut_link()
    try:
        seen = look(desk, h1, h2, code=3)
    finally:
        h2.restore_link()
        h1.run(["systemctl", "stop", "edited.service"])
        h1.run(["rm", unit])
        h1.run(["systemctl", "daemon-reload"])

    assert seen["h1"]["daemon_reload"]["state"] == "advice"
    assert "edited.service" in seen["h1"]["daemon_reload"]["figure"]
    assert seen["h1"]["dead_man"]["state"] == "ok"
    assert seen["h2"]["reachable"]["state"] == "failed"
    assert seen["h2"]["dead_man"]["because"] == "reachable"
