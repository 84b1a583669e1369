"""The door over ssh, against a real ssh server in this process (paramiko's) that really runs commands."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest
from tests.unit.adapters.ssh_server import HOST_KEY, SshServer

from changectl.adapters.doors import HostDoors
from changectl.adapters.shipped import playbooks_folder
from changectl.adapters.ssh import SshPipe
from changectl.adapters.ssh_target import SshTarget
from changectl.core.errors import ContactLost, Refused
from changectl.core.ports import HostAddress


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "id"
    paramiko.ECDSAKey.generate().write_private_key_file(str(path))
    return path


@pytest.fixture
def server(key_file: Path) -> Iterator[SshServer]:
    running = SshServer(paramiko.ECDSAKey.from_private_key_file(str(key_file)))
    yield running
    running.close()


def known_hosts(folder: Path, port: int, key: paramiko.PKey = HOST_KEY) -> Path:
    path = folder / "known_hosts"
    path.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    return path


def address(server: SshServer, folder: Path, **variables: Any) -> HostAddress:
    known = known_hosts(folder, server.port)
    return HostAddress("gpu1", {
        "ansible_host": "127.0.0.1", "ansible_port": server.port, "ansible_user": "kim",
        "ansible_ssh_private_key_file": str(folder / "id"),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={known}",
        "ansible_python_interpreter": sys.executable, **variables,
    })  # fmt: skip


def listen(pipe: SshPipe) -> None:
    """Until it ends."""
    while True:
        pipe.receive(5)


def test_the_host_program_is_reached_over_ssh(server: SshServer, tmp_path: Path) -> None:
    door = HostDoors(playbooks_folder()).open(address(server, tmp_path))
    try:
        assert door.call("hello", {}, timeout=20)["hostname"]
    finally:
        door.close()


def test_a_large_answer_and_a_large_request_pass(server: SshServer, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x" * 3_000_000)
    door = HostDoors(playbooks_folder()).open(address(server, tmp_path))
    manager = {"command": {"start": ["true"], "stop": None, "cwd": None, "pid": {"port": 1}}}
    try:
        seen = door.call("inspect", {"manager": manager, "files": [str(big)], "spare": "y" * 3_000_000}, timeout=60)
    finally:
        door.close()
    assert seen["files"][str(big)]["size"] == 3_000_000


def test_a_host_key_that_is_not_known_is_refused(server: SshServer, tmp_path: Path) -> None:
    host = address(server, tmp_path)
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(Refused, match=r"host key of 127\.0\.0\.1:.* is unknown") as caught:
        SshPipe(host, "true")
    assert caught.value.reason == "host_key_unknown"


def test_a_host_key_that_changed_is_refused(server: SshServer, tmp_path: Path) -> None:
    host = address(server, tmp_path)
    known_hosts(tmp_path, server.port, paramiko.ECDSAKey.generate())
    with pytest.raises(Refused, match="is not the known one") as caught:
        SshPipe(host, "true")
    assert caught.value.reason == "host_key_changed"


def test_a_key_that_is_not_accepted_is_refused(server: SshServer, tmp_path: Path) -> None:
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "other"))
    host = address(server, tmp_path, ansible_ssh_private_key_file=str(tmp_path / "other"))
    with pytest.raises(Refused, match=r"does not accept this user and key \(kim\)"):
        SshPipe(host, "true")


def test_a_password_of_the_inventory_is_used_and_not_shown(server: SshServer, tmp_path: Path) -> None:
    variables = {"ansible_password": server.password, "ansible_ssh_private_key_file": None}
    pipe = SshPipe(address(server, tmp_path, **variables), "echo in")
    assert pipe.receive(5) == b"in\n"
    pipe.close()
    assert server.password not in repr(SshTarget.of(address(server, tmp_path, **variables)))


def test_nobody_listening_is_contact_lost(server: SshServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ContactLost) as caught:
        SshPipe(address(server, tmp_path, ansible_port=port), "true")
    assert str(caught.value) == (
        f"gpu1: cannot connect to 127.0.0.1:{port}: connection refused; see whether the host is up, and whether sshd "
        "listens there (ansible_host, ansible_port)"
    )


def test_a_name_that_means_nothing_is_contact_lost(server: SshServer, tmp_path: Path) -> None:
    words = r"cannot connect to no-such-host\.invalid:\d+: no address is known for that name .*ansible_host"
    with pytest.raises(ContactLost, match=words):
        SshPipe(address(server, tmp_path, ansible_host="no-such-host.invalid"), "true")


def test_a_command_that_ends_is_contact_lost_with_its_words(server: SshServer, tmp_path: Path) -> None:
    pipe = SshPipe(address(server, tmp_path), "echo 'sudo: a password is required' >&2; exit 1")
    with pytest.raises(ContactLost, match="a password is required"):
        listen(pipe)
    pipe.close()


def test_a_silent_host_gives_nothing_and_is_not_lost(server: SshServer, tmp_path: Path) -> None:
    pipe = SshPipe(address(server, tmp_path), "cat")
    assert pipe.receive(0.05) == b""
    pipe.send(b"still here\n")
    assert pipe.receive(5) == b"still here\n"
    pipe.close()


def test_a_connection_that_dies_is_contact_lost(server: SshServer, tmp_path: Path) -> None:
    pipe = SshPipe(address(server, tmp_path), "cat")
    server.close()
    with pytest.raises(ContactLost):
        listen(pipe)
    pipe.close()


def test_a_jump_host_is_passed_through(server: SshServer, key_file: Path, tmp_path: Path) -> None:
    far = SshServer(server.key)
    known = tmp_path / "both"
    lines = [f"[127.0.0.1]:{port} {HOST_KEY.get_name()} {HOST_KEY.get_base64()}\n" for port in (server.port, far.port)]
    known.write_text("".join(lines))
    arguments = f"-F none -o UserKnownHostsFile={known} -J kim@127.0.0.1:{server.port}"
    host = address(server, tmp_path, ansible_port=far.port, ansible_ssh_common_args=arguments)
    try:
        pipe = SshPipe(host, "echo through")
        assert pipe.receive(5) == b"through\n"
        pipe.close()
        assert server.forwarded == [("127.0.0.1", far.port)]
    finally:
        far.close()


@pytest.mark.parametrize("request_", ["session", "exec"])
def test_a_connection_that_ends_before_the_host_program_runs_is_lost(
    server: SshServer, tmp_path: Path, request_: str
) -> None:
    server.refuses = request_
    with pytest.raises(ContactLost, match="gpu1: ssh let us in, and the connection ended before the host program ran"):
        SshPipe(address(server, tmp_path), "true")


def test_a_proxy_command_carries_the_connection(server: SshServer, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, select, socket, sys\n"
        "far = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "while True:\n"
        "    for ready in select.select([0, far], [], [])[0]:\n"
        "        data = os.read(0, 65536) if ready == 0 else far.recv(65536)\n"
        "        if not data: sys.exit()\n"
        "        far.sendall(data) if ready == 0 else os.write(1, data)\n"
    )
    known = known_hosts(tmp_path, server.port)
    proxy = f"{sys.executable} {relay} %h %p"
    arguments = f"-F none -o UserKnownHostsFile={known} -o 'ProxyCommand={proxy}'"
    pipe = SshPipe(address(server, tmp_path, ansible_ssh_common_args=arguments), "echo relayed")
    assert pipe.receive(5) == b"relayed\n"
    pipe.close()


def test_host_key_checking_cannot_be_switched_off(server: SshServer, tmp_path: Path) -> None:
    arguments = f"-F none -o UserKnownHostsFile={tmp_path}/empty -o StrictHostKeyChecking=no"
    with pytest.raises(Refused, match="unknown"):
        SshPipe(address(server, tmp_path, ansible_ssh_common_args=arguments), "true")
