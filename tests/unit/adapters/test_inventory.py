"""The operator's inventory as Ansible itself reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.shipped import playbooks_folder
from changectl.adapters.vault import forget
from changectl.core.errors import InputError

HOSTS = """\
all:
  vars: {site: north}
  children:
    gpu:
      hosts:
        gpu2: {ansible_host: 192.0.2.2, slots: 8}
        gpu1: {ansible_host: 192.0.2.1}
      children:
        old: {hosts: {gpu0: }}
      vars: {slots: 4}
    cpu: {hosts: {cpu1: }}
  hosts: {lonely: }
"""
SECRET = "correct-horse-battery-staple"


def inventory(
    folder: Path,
    text: str = HOSTS,
    limit: str | None = None,
    vaults: tuple[str, ...] = (),
    learn: Callable[[Iterable[str]], None] = forget,
) -> AnsibleInventory:
    source = folder / "hosts.yml"
    source.write_text(text)
    environ = {**os.environ, "ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "HOME": str(folder)}
    return AnsibleInventory(source, playbooks_folder(), limit, vaults, environ, learn)


def names(found: AnsibleInventory, pattern: str) -> list[str]:
    return [host.name for host in found.hosts(pattern)]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> AnsibleInventory:
    return inventory(tmp_path_factory.mktemp("inventory"))


def test_a_group_has_its_own_hosts_and_those_of_its_children(read: AnsibleInventory) -> None:
    assert sorted(names(read, "gpu")) == ["gpu0", "gpu1", "gpu2"]
    assert names(read, "old") == ["gpu0"]


def test_a_single_host_is_found_by_its_name_wherever_it_stands(read: AnsibleInventory) -> None:
    assert names(read, "cpu1") == ["cpu1"]
    assert names(read, "lonely") == ["lonely"]


def test_one_host_is_found_by_its_name_whatever_the_limit_says_and_a_group_is_none(tmp_path: Path) -> None:
    limited = inventory(tmp_path, limit="gpu1")
    caller = limited.host("cpu1")
    assert caller is not None
    assert (caller.name, caller.variables["site"]) == ("cpu1", "north")
    assert limited.host("gpu") is None
    assert limited.host("tpu") is None


def test_lists_of_names_are_read_in_order_each_host_once(read: AnsibleInventory) -> None:
    assert names(read, "gpu1,cpu,gpu1") == ["gpu1", "cpu1"]
    assert names(read, "cpu:old") == ["cpu1", "gpu0"]


def test_what_is_not_there_gives_nothing(read: AnsibleInventory) -> None:
    assert names(read, "tpu") == []
    assert names(read, "_meta") == []


def test_variables_are_those_that_ansible_would_use(read: AnsibleInventory) -> None:
    by_name = {host.name: host.variables for host in read.hosts("gpu")}
    assert (by_name["gpu2"]["slots"], by_name["gpu1"]["slots"]) == (8, 4)
    assert by_name["gpu1"]["site"] == "north"
    assert by_name["gpu1"]["ansible_host"] == "192.0.2.1"
    assert by_name["gpu0"]["ansible_host"] == "gpu0"


def test_all_names_are_known_for_messages(read: AnsibleInventory) -> None:
    assert read.known() >= {"gpu", "old", "cpu", "gpu0", "gpu1", "cpu1", "lonely", "all"}


def test_a_host_without_any_variable_is_known_too(tmp_path: Path) -> None:
    assert inventory(tmp_path, "all: {hosts: {plain: }, children: {gpu: {hosts: {bare: }}}}\n").known() >= {
        "plain",
        "bare",
    }


@pytest.mark.parametrize(("limit", "expected"), [("gpu1", ["gpu1"]), ("old", ["gpu0"]), ("cpu", [])])
def test_a_limit_leaves_hosts_out(limit: str, expected: list[str], tmp_path: Path) -> None:
    assert names(inventory(tmp_path, limit=limit), "gpu") == expected


def test_a_host_whose_variables_look_secret_does_not_show_them(tmp_path: Path) -> None:
    found = inventory(tmp_path, f"all: {{hosts: {{gpu1: {{ansible_password: {SECRET}}}}}}}\n")
    assert found.hosts("gpu1")[0].variables["ansible_password"] == SECRET


@pytest.mark.parametrize("text", ["all: [hosts\n", "all: {hosts: [1]}\n"])
def test_an_inventory_that_ansible_cannot_read_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        inventory(tmp_path, text).hosts("all")
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "hosts.yml")
    assert "ansible-inventory" in problem.hint


def test_an_inventory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        AnsibleInventory(tmp_path / "nowhere.yml", playbooks_folder()).hosts("all")


# -- vault -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A password file, and an inventory with a value that it opens."""
    folder = tmp_path_factory.mktemp("vault")
    password = folder / "password"
    password.write_text("open-sesame\n")
    tool = Path(sys.executable).parent / "ansible-vault"
    command = [str(tool), "encrypt_string", "--vault-id", f"prod@{password}", "--encrypt-vault-id", "prod",
               "--stdin-name", "vault_key"]  # fmt: skip
    done = subprocess.run(command, input=SECRET, capture_output=True, text=True, check=True)
    block = "\n".join(f"        {line}" for line in done.stdout.strip().splitlines())
    return password, f"all:\n  hosts:\n    gpu1:\n{block}\n"


def test_an_encrypted_value_is_opened(vault: tuple[Path, str], tmp_path: Path) -> None:
    password, text = vault
    (host,) = inventory(tmp_path, text, vaults=(f"prod@{password}",)).hosts("gpu1")
    assert host.variables["vault_key"] == SECRET


def test_without_its_vault_an_encrypted_value_says_what_is_missing(vault: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--vault-id"):
        inventory(tmp_path, vault[1]).hosts("gpu1")


def test_the_wrong_vault_password_says_what_is_missing(vault: tuple[Path, str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("shut\n")
    with pytest.raises(InputError) as caught:
        inventory(tmp_path, vault[1], vaults=(f"prod@{wrong}",)).hosts("gpu1")
    assert "shut" not in str(caught.value)


# -- files that are encrypted as a whole -------------------------------------------------------------------------------
HIDDEN = f"""\
vault_chat_key: {SECRET}
upstream: {{user: chatter, pass phrase: "open hidden door"}}
plain_looking: 'blue-elephant-42'
numbers: [8000, true]
model_path: /srv/models/chat
ansible_user: operator
unsafe_one: !unsafe 'tall-giraffe-17'
"""


def encrypt(path: Path, password: Path) -> None:
    tool = Path(sys.executable).parent / "ansible-vault"
    command = [str(tool), "encrypt", "--vault-id", f"prod@{password}", "--encrypt-vault-id", "prod", str(path)]
    subprocess.run(command, capture_output=True, check=True)


@pytest.mark.parametrize("where", ["group_vars/gpu.yml", "group_vars/gpu/vault.yml", "host_vars/gpu1"])
def test_what_a_file_that_is_encrypted_as_a_whole_holds_is_learned(
    where: str, vault: tuple[Path, str], tmp_path: Path
) -> None:
    (tmp_path / where).parent.mkdir(parents=True)
    (tmp_path / where).write_text(HIDDEN)
    encrypt(tmp_path / where, vault[0])
    learned: list[str] = []
    found = inventory(tmp_path, vaults=(f"prod@{vault[0]}",), learn=learned.extend)

    assert found.known()  # reading the names first changes nothing
    (host,) = found.hosts("gpu1")

    assert host.variables["vault_chat_key"] == SECRET
    assert {SECRET, "open hidden door", "blue-elephant-42", "tall-giraffe-17", "chatter"} == set(learned)


def test_an_inventory_file_that_is_encrypted_is_learned(vault: tuple[Path, str], tmp_path: Path) -> None:
    learned: list[str] = []
    text = f"[gpu]\ngpu1 ansible_host=192.0.2.1 door='{SECRET} again' key={SECRET}\n"
    found = inventory(tmp_path, text, vaults=(f"prod@{vault[0]}",), learn=learned.extend)
    encrypt(found.source, vault[0])  # it is read when the first host is asked for

    (host,) = found.hosts("gpu")

    assert host.variables["door"] == f"{SECRET} again"
    assert set(learned) == {SECRET, f"{SECRET} again"}


# -- templates in the variables of connections -------------------------------------------------------------------------
def test_templates_that_say_how_to_reach_a_host_are_filled_as_ansible_would(tmp_path: Path) -> None:
    text = """\
all:
  hosts:
    gpu1:
      site: north
      login: ops
      vault_become: "{{ login }}-secret"
      ansible_host: "{{ inventory_hostname }}.{{ site }}.example.org"
      ansible_become_password: "{{ vault_become }}"
      ansible_python_interpreter: "{{ ansible_playbook_python }}"
      ansible_remote_tmp: "{{ lookup('env', 'TMPDIR') }}"
      other: "{{ site }}"
"""
    (host,) = inventory(tmp_path, text).hosts("gpu1")

    assert host.variables["ansible_host"] == "gpu1.north.example.org"
    assert host.variables["ansible_become_password"] == "ops-secret"
    assert host.variables["ansible_python_interpreter"] == sys.executable
    assert host.variables["ansible_remote_tmp"].startswith("{{")  # not needed for connecting
    assert host.variables["other"] == "{{ site }}"


@pytest.mark.parametrize("template", ["{{ vault_become }}", "{{ lookup('env', 'X') }}", "{{ 'a' | no_such_filter }}"])
def test_a_password_whose_template_cannot_be_filled_is_named_and_not_sent(template: str, tmp_path: Path) -> None:
    text = f'all: {{hosts: {{gpu1: {{ansible_become_password: "{template}"}}}}}}\n'

    with pytest.raises(InputError, match=r"ansible_become_password: .*for host gpu1"):
        inventory(tmp_path, text).hosts("gpu1")
