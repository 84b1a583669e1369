"""The lab is what it claims to be; every other lab test stands on that."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lab.harness import cgroups
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import write_inventory
from tests.lab.harness.lab import Lab
from tests.lab.harness.services import LlamaService

pytestmark = pytest.mark.lab
ServiceMaker = Callable[..., LlamaService]


def test_hosts_boot_a_real_systemd_each_in_a_tree_of_its_own(h1: LabHost, h2: LabHost) -> None:
    for host in (h1, h2):
        assert host.run(["cat", "/proc/1/comm"]).stdout == "systemd\n"
        assert host.run(["hostname"]).stdout == f"{host.name}\n"
    groups = [Path(f"/proc/{host.leader}/cgroup").read_text() for host in (h1, h2)]
    assert f"{cgroups.PREFIX}h1/" in groups[0]
    assert f"{cgroups.PREFIX}h2/" in groups[1]
    assert h1.run(["cat", "/etc/machine-id"]).stdout != h2.run(["cat", "/etc/machine-id"]).stdout


def test_ssh_works_for_root_and_for_an_administrator_with_sudo(h1: LabHost) -> None:
    assert h1.ssh("id -un").stdout == "root\n"
    assert h1.ssh("id -un && sudo id -un", user="ops").stdout == "ops\nroot\n"


def test_ssh_refuses_a_host_whose_key_is_another_one(h1: LabHost, h2: LabHost, tmp_path: Path) -> None:
    wrong = tmp_path / "known_hosts"
    wrong.write_text(f"{h1.address} {h2.host_key}\n")
    command = [word.replace(str(h1.known_hosts), str(wrong)) for word in h1.ssh_command()]

    done = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


@pytest.mark.parametrize("user", ["root", "ops"])
def test_ansible_reaches_both_hosts_through_the_inventory(
    h1: LabHost, h2: LabHost, c1: LabHost, tmp_path: Path, user: str
) -> None:
    inventory = write_inventory(tmp_path / "inventory", [h1, h2], user=user, others=[c1])
    ansible = Path(sys.executable).with_name("ansible")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(tmp_path / "home")}
    command = [str(ansible), "-i", str(inventory), "gpu", "-m", "ansible.builtin.command", "-a", "id -un"]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("rc=0") == 2
    assert done.stdout.count("\nroot") == 2


def test_a_llama_service_answers_over_loopback_and_from_the_other_host(
    h1: LabHost, h2: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, flags={"--ctx-size": "2048", "--parallel": "2"})

    assert len(service.complete(tokens=8)) == 8
    assert service.get("/props")["total_slots"] == 2
    assert "llamacpp:tokens_predicted_total 8" in service.text("/metrics")
    assert service.argv()[1] == "/usr/local/bin/llama-server"
    from_other = ["python3", "-c", f"import urllib.request as u; print(u.urlopen('{service.url}/health').status)"]
    assert h2.run(from_other).stdout == "200\n"


def test_the_engine_runs_as_its_own_user_on_its_own_core(h1: LabHost, llama_service: ServiceMaker) -> None:
    status = h1.read_file(f"/proc/{llama_service(h1).pid()}/status").decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())

    assert fields["Cpus_allowed_list"] == "0"
    assert fields["Uid"].split()[0] == h1.run(["id", "-u", "llm"]).stdout.strip()


def test_the_configuration_has_what_an_edit_must_keep(h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)

    assert h1.run(["readlink", service.env_file]).stdout == f"{service.env_target}\n"
    facts = service.stat(service.env_file)
    assert "640 llm:llm" in facts
    assert "user.origin=" in facts
    assert "system.posix_acl_access=" in facts
    assert "user:ops:r--" in h1.run(["getfacl", "--absolute-names", service.env_target]).stdout


def test_a_removed_service_leaves_nothing(h1: LabHost, lab: Lab) -> None:
    service = LlamaService(h1, name="passing")
    service.install()

    service.uninstall()

    assert h1.run(["systemctl", "is-system-running"]).stdout == "running\n"
    assert h1.run(["find", "/etc/systemd", "/etc/llama", "/srv", "-name", "*passing*"]).stdout == ""


def test_a_cut_link_is_noticed_and_heals(h1: LabHost, h2: LabHost) -> None:
    h1.cut_link()
    try:
        with pytest.raises(OSError, match=r"timed out|No route"):
            socket.create_connection((h1.address, 22), timeout=1)
        ping = ["python3", "-c", f"import socket; socket.create_connection(('{h1.address}', 22), 1)"]
        assert h2.run(ping, check=False).returncode != 0
    finally:
        h1.restore_link()
    h1.wait_ssh()


def test_a_host_keeps_its_disk_and_its_services_over_a_reboot_and_a_power_cut(
    h2: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h2)
    h2.write_file("/root/note", "still here\n")

    h2.reboot()
    service.wait_ready()
    h2.kill()
    h2.boot()
    service.wait_ready()

    assert h2.read_file("/root/note") == b"still here\n"


def test_a_start_that_fails_shows_the_engines_own_words(h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    h1.write_file(service.model, service.host.read_file(service.model)[:100_000], mode="0640", owner="root:llm")

    h1.run(["systemctl", "restart", service.unit], check=False)

    deadline = time.monotonic() + 10
    while "failed to load model" not in service.log() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "failed to load model" in service.log()
