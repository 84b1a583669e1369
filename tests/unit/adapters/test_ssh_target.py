"""Where and how to connect: Ansible's own variables, read as Ansible reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from changectl.adapters.ssh_target import SshTarget
from changectl.core.ports import HostAddress


def target(**variables: Any) -> SshTarget:
    return SshTarget.of(
        HostAddress("gpu1", {"ansible_host": "192.0.2.7", "ansible_ssh_common_args": "-F none", **variables})
    )


def test_a_host_without_ssh_arguments_has_defaults() -> None:
    found = target()

    assert (found.hostname, found.port, found.jump) == ("192.0.2.7", 22, None)


def test_arguments_are_read_in_all_three_spellings() -> None:
    found = target(ansible_ssh_extra_args="-o UserKnownHostsFile=/keys/known -oPort=2222 -J admin@bastion -i /keys/id")

    assert (found.known_hosts[0], found.port, found.jump) == ("/keys/known", 2222, "admin@bastion")
    assert found.keys == ("/keys/id",)


def test_the_inventory_wins_over_arguments() -> None:
    assert target(ansible_port=2200, ansible_ssh_extra_args="-p 2222").port == 2200


def test_an_empty_argument_variable_says_nothing() -> None:
    assert target(ansible_ssh_args="").user is None


def test_ssh_config_fills_what_the_inventory_leaves_open(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host gpu1\n  HostName 192.0.2.7\n  Port 2222\n  User svc\n  IdentityFile /keys/gpu\n  ProxyJump bastion\n"
        "  UserKnownHostsFile /keys/a /keys/b\n"
    )
    target = SshTarget.of(HostAddress("gpu1", {"ansible_ssh_extra_args": f"-F {config}"}))

    assert (target.hostname, target.port, target.user) == ("192.0.2.7", 2222, "svc")
    assert (target.keys, target.jump) == (("/keys/gpu",), "bastion")
    assert target.known_hosts[:2] == ("/keys/a", "/keys/b")


def test_the_inventory_wins_over_ssh_config(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host *\n  Port 2222\n  User svc\n  IdentityFile /keys/gpu\n")
    variables = {"ansible_ssh_extra_args": f"-F {config}", "ansible_port": 22, "ansible_user": "kim",
                 "ansible_ssh_private_key_file": "/keys/own"}  # fmt: skip
    target = SshTarget.of(HostAddress("gpu1", variables))
    assert (target.port, target.user, target.keys) == (22, "kim", ("/keys/own",))


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        ("-o UserKnownHostsFile=/a", ("/a",)),
        ("-oUserKnownHostsFile=/a", ("/a",)),
        ("-o 'UserKnownHostsFile=/a /b'", ("/a", "/b")),
        ("-o 'UserKnownHostsFile /a'", ("/a",)),
        ("-o 'UserKnownHostsFile = /a'", ("/a",)),
        ('-o UserKnownHostsFile="/a"', ("/a",)),
    ],
)
def test_an_option_is_understood_however_it_is_written(arguments: str, known: tuple[str, ...]) -> None:
    target = SshTarget.of(HostAddress("gpu1", {"ansible_ssh_common_args": f"-F none {arguments}"}))
    assert target.known_hosts[: len(known)] == known


@pytest.mark.parametrize("option", ["ProxyJump=none", "ProxyCommand=none"])
def test_none_switches_a_proxy_off(option: str, tmp_path: Path) -> None:
    target = SshTarget.of(HostAddress("gpu1", {"ansible_ssh_common_args": f"-F none -o {option}"}))
    assert (target.jump, target.proxy) == (None, None)


def test_a_proxy_command_keeps_its_spaces() -> None:
    arguments = '-F none -o ProxyCommand="ssh -W %h:%p -q bastion"'
    target = SshTarget.of(HostAddress("gpu1", {"ansible_ssh_common_args": arguments}))
    assert target.proxy == "ssh -W %h:%p -q bastion"
