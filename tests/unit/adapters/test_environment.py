"""What Ansible may see of the caller's environment."""

from __future__ import annotations

import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from changectl.adapters.environment import ALLOWED, SOCKET_NAME, SOCKET_PATH, allowed, for_ansible

NAMES = st.text(st.characters(min_codepoint=65, max_codepoint=95), min_size=1)


@given(st.dictionaries(NAMES, st.text()))
def test_only_what_is_on_the_list_passes(environ: dict[str, str]) -> None:
    assert set(allowed(environ)) <= {*ALLOWED, "LC_ALL"}


def test_what_ssh_proxies_and_vaults_need_passes_unchanged() -> None:
    needed = {"SSH_AUTH_SOCK": "/a", "HTTPS_PROXY": "http://p", "ANSIBLE_VAULT_PASSWORD_FILE": "/v", "HOME": "/h"}
    assert needed.items() <= allowed({**needed, "OPENAI_API_KEY": "secret"}).items()
    assert "OPENAI_API_KEY" not in allowed({"OPENAI_API_KEY": "secret"})


def test_the_locale_is_one_that_ansible_accepts() -> None:
    assert allowed({"LC_ALL": "C"})["LC_ALL"] == "C.UTF-8"


def test_a_job_finds_our_module_and_our_own_ansible_first_and_checks_host_keys() -> None:
    environment = for_ansible(
        {"PATH": "/usr/bin", "ANSIBLE_HOST_KEY_CHECKING": "False"}, Path("/p"), Path("/v/bin/python")
    )
    assert environment["PATH"] == "/v/bin:/usr/bin"
    assert environment["ANSIBLE_LIBRARY"] == "/p/library"
    assert environment["ANSIBLE_MODULE_UTILS"] == "/p/module_utils"
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "True"


def test_without_a_path_the_usual_places_are_searched() -> None:
    assert for_ansible({}, Path("/p"), Path("/v/bin/python"))["PATH"] == "/v/bin:/usr/bin:/bin"


def test_under_a_long_home_the_sockets_of_ssh_lie_in_a_short_folder_of_this_user() -> None:
    home = "/home/" + "h" * 70
    folder = Path(for_ansible({"HOME": home}, Path("/p"), Path("/v/bin/python"))["ANSIBLE_SSH_CONTROL_PATH_DIR"])
    assert folder.stat().st_mode & 0o777 == 0o700
    with socket.socket(socket.AF_UNIX) as listener:
        place = folder / ("0123456789" + "." + "r" * 16)  # as Ansible and ssh name it
        listener.bind(str(place))
        place.unlink()
    other = for_ansible({"HOME": f"{home}h"}, Path("/p"), Path("/v/bin/python"))["ANSIBLE_SSH_CONTROL_PATH_DIR"]
    assert other != str(folder), "under another home the same host may be reached another way"


def test_where_the_usual_folder_is_short_enough_or_the_user_names_one_it_stays() -> None:
    name = "ANSIBLE_SSH_CONTROL_PATH_DIR"
    assert name not in for_ansible({"HOME": "/home/ops"}, Path("/p"), Path("/v/bin/python"))
    named = {"HOME": "/home/" + "h" * 70, name: "/run/ops"}
    assert for_ansible(named, Path("/p"), Path("/v/bin/python"))[name] == "/run/ops"


def test_the_longest_home_with_the_usual_folder_still_takes_a_socket() -> None:
    """One byte more and the folder is another; the socket's name is the one that ssh gives it until it listens."""
    longest = "/" + "h" * (SOCKET_PATH - SOCKET_NAME - len("/.ansible/cp") - 1)
    name = "ANSIBLE_SSH_CONTROL_PATH_DIR"
    assert name not in for_ansible({"HOME": longest}, Path("/p"), Path("/v/bin/python"))
    assert name in for_ansible({"HOME": longest + "h"}, Path("/p"), Path("/v/bin/python"))
    assert len(f"{longest}/.ansible/cp/{'d' * 10}.{'r' * 16}") == SOCKET_PATH
