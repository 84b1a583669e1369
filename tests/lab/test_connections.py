"""Ways to a host as Ansible knows them: vaults, a sudo password asked for, a jump host; what is wrong is said once."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from tests.lab.desk import ANY_FIGURES, CONSOLE_SCRIPT, Desk
from tests.lab.harness import network
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService
from tests.lab.sudo_user import sudo_user
from tests.lab.vault_desk import VAULT, VAULT_FILE, encrypted_variables

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
KEPT = f"    accept: {ANY_FIGURES}\n"
MORE_SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"
SUDO_PASSWORD = "sudo asks me: 51$f"


@pytest.fixture
def user_with_password(h1: LabHost) -> Iterator[str]:
    """A user of the host who becomes root with a password only."""
    with sudo_user(h1, SUDO_PASSWORD) as user:
        yield user


def at_a_terminal(desk: Desk, answer: str, *words: str, timeout: float = 120) -> tuple[int, str]:
    """Run the command on a terminal, type `answer` at its password prompt, and return exit code and screen."""
    main, side = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(desk.home), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", str(CONSOLE_SCRIPT), *words],
        cwd=desk.folder, env=environment, stdin=side, stdout=side, stderr=side,
    )  # fmt: skip
    os.close(side)
    screen, typed, deadline = b"", False, time.monotonic() + timeout
    while time.monotonic() < deadline:
        if select.select([main], [], [], 0.2)[0]:
            try:
                screen += os.read(main, 65536)
            except OSError:  # the terminal's other end is closed: the command has ended
                break
        if not typed and b"password:" in screen:
            os.write(main, answer.encode() + b"\n")
            typed = True
    os.close(main)
    return process.wait(timeout=10), screen.decode(errors="replace")


def test_a_vault_identity_opens_the_variables_that_the_service_needs(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, environment={"LLAMA_API_KEY": "key-of-the-engine-1"})
    desk.lay_out([service], more='auth: {bearer: "{{ vault_chat_key }}"}\n')
    encrypted_variables(desk, {"vault_chat_key": "key-of-the-engine-1"})

    ended = desk.run("apply", "-i", "hosts.yml", *VAULT, "--json", desk.plan(MORE_SLOTS, more=KEPT))

    step = ended.document["steps"][0]
    # Whether the figures of a busy machine are good enough is not the question here.
    assert (ended.code, step["outcome"]) in {(0, "kept"), (5, "reverted")}, ended
    assert [phase["phase"] for phase in step["measurements"]] == ["A", "B"]


@pytest.mark.parametrize("given", ["another password", None], ids=["wrong", "none"])
def test_a_vault_that_does_not_open_is_one_clear_error(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, given: str | None
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], more='auth: {bearer: "{{ vault_chat_key }}"}\n')
    encrypted_variables(desk, {"vault_chat_key": "key-of-the-engine-1"})
    (desk.folder / VAULT_FILE).write_text(f"{given}\n")
    plan = desk.plan(MORE_SLOTS)

    ended = desk.run("plan", "-i", "hosts.yml", *(VAULT if given else ()), plan).expect(2)

    assert ended.out == ""
    assert len(ended.err.strip().splitlines()) <= 2
    assert "vault" in ended.err
    assert "--vault-id" in ended.err


def test_the_sudo_password_is_asked_for_once_and_used_for_door_and_playbooks(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, user_with_password: str
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], user=user_with_password)

    code, screen = at_a_terminal(
        desk, SUDO_PASSWORD, "apply", "-i", "hosts.yml", "-K", desk.plan(MORE_SLOTS, more=KEPT)
    )

    assert code == 0, screen
    assert service.get("/props")["total_slots"] == 6
    assert screen.count("password:") == 1
    assert SUDO_PASSWORD not in screen


@pytest.mark.parametrize("typed", ["not it", ""], ids=["wrong", "empty"])
def test_a_wrong_sudo_password_is_one_clear_error(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, user_with_password: str, typed: str
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], user=user_with_password)

    code, screen = at_a_terminal(desk, typed, "plan", "-i", "hosts.yml", "-K", desk.plan(MORE_SLOTS), timeout=60)

    assert code == 3, screen
    assert "sudo" in screen
    assert "Traceback" not in screen


def test_a_sudo_that_wants_a_password_nobody_gave_says_so(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, user_with_password: str
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], user=user_with_password)

    refusal = desk.preview(desk.plan(MORE_SLOTS)).expect(3).document["steps"][0]["refusal"]

    assert "password is required" in refusal


@pytest.fixture
def only_through_c1(h1: LabHost, c1: LabHost) -> Iterator[LabHost]:
    """The service's host, which this machine reaches no more but through `c1`."""
    h1.run(["ip", "route", "add", "blackhole", f"{network.CONTROLLER}/32"])
    yield c1
    h1.run(["ip", "route", "del", "blackhole", f"{network.CONTROLLER}/32"])


@pytest.mark.parametrize("form", ["-J root@{jump}", "-o ProxyJump=root@{jump}"], ids=["-J", "ProxyJump"])
def test_a_host_behind_a_jump_host_is_reached_through_it(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, only_through_c1: LabHost, form: str
) -> None:
    service = llama_service(h1)
    # ssh asks the jump host with its own configuration, so that file is where key and known hosts stand.
    configuration = desk.home / "ssh_config"
    desk.lay_out([service])
    configuration.write_text(
        f"Host *\n  IdentityFile {h1.private_key}\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n"
        f"  UserKnownHostsFile {h1.known_hosts}\n"
    )
    arguments = f"-F {configuration} {form.format(jump=only_through_c1.address)}"
    desk.lay_out([service], variables={"ansible_ssh_common_args": arguments})

    desk.preview(desk.plan(MORE_SLOTS)).expect(0)
    ended = desk.keep(MORE_SLOTS)

    assert ended.document["steps"][0]["outcome"] == "kept"
    assert service.get("/props")["total_slots"] == 6
