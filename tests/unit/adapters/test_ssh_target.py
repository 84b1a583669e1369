"""Where and how to connect: Ansible's own variables, read as Ansible reads them."""

from __future__ import annotations

from typing import Any

from changectl.adapters.ssh import SshTarget
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
