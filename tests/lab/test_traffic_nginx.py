"""Instances behind a real nginx: out of service before they are stopped, back when they answer, whoever dies.

A change that is kept while live clients lose nothing: `test_design_example.py`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from tests.lab.desk import ANY_FIGURES, Desk, wait_for
from tests.lab.harness.balancer import FILE, Nginx, clients
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(360, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
TRAFFIC = f'traffic: {{nginx: {{host: c1, file: {FILE}, upstream: chat, member: "{{{{ ansible_host }}}}:8000"}}}}\n'
TOO_MUCH = "{parameter: {name: predict, from: absent, to: 3000000000}}"  # a whole number, and more than it takes
CHANGE = "{{parameter: {{name: parallel, from: 4, to: {to}}}}}"


@pytest.fixture
def pair(h1: LabHost, h2: LabHost, llama_service: ServiceMaker) -> list[LlamaService]:
    """Two instances of one service."""
    return [llama_service(h1), llama_service(h2)]


@pytest.fixture
def nginx(c1: LabHost, pair: list[LlamaService]) -> Iterator[Nginx]:
    """The balancer in front of both."""
    made = Nginx(c1, [f"{one.host.address}:8000" for one in pair])
    made.install()
    yield made
    made.uninstall()


def laid_out(desk: Desk, pair: list[LlamaService], nginx: Nginx, more: str = "") -> Desk:
    return desk.lay_out(pair, more=TRAFFIC + more, others=[nginx.host])


def test_a_change_that_does_not_start_is_taken_back_and_loses_no_request(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    laid_out(desk, pair, nginx)
    before = nginx.stat()

    with clients(nginx.url) as counted:
        desk.measured(desk.plan(TOO_MUCH, more=f"    accept: {ANY_FIGURES}\n"), 4, timeout=330)

    assert counted.good > 5
    assert counted.lost == []
    assert [one.get("/props")["total_slots"] for one in pair] == [4, 4]
    assert nginx.stat() == before


def test_the_last_healthy_member_is_never_taken_out(desk: Desk, pair: list[LlamaService], nginx: Nginx) -> None:
    laid_out(desk, pair, nginx)
    pair[1].host.run(["systemctl", "stop", pair[1].unit])

    ended = desk.apply(desk.plan(CHANGE.format(to=6))).expect(3)

    assert "h2" in ended.out or "last healthy member" in ended.out
    assert nginx.host.read_file(FILE).decode() == nginx.text


def killed_while_out(desk: Desk, pair: list[LlamaService], nginx: Nginx) -> None:
    """The controller dies while the first instance is out of service and restarts."""
    plan = desk.plan(CHANGE.format(to=6), requests=200, more=f"    accept: {ANY_FIGURES}\n")
    with desk.start("apply", "-i", "hosts.yml", "--json", plan) as process:
        wait_for(lambda: nginx.is_out(nginx.members[0]), "the first member is out", timeout=120)
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_when_the_controller_dies_a_healthy_member_comes_back_by_itself(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    laid_out(desk, pair, nginx, "lease: 5s\n")
    killed_while_out(desk, pair, nginx)

    wait_for(lambda: not nginx.is_out(nginx.members[0]), "the dead-man puts it back", timeout=120)
    assert nginx.host.read_file(FILE).decode() == nginx.text
    with clients(nginx.url) as counted:
        wait_for(lambda: counted.good > 6, "both members serve")
    assert counted.lost == []


def test_when_the_controller_dies_a_sick_member_stays_out_until_it_is_well(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    laid_out(desk, pair, nginx, "lease: 5s\n")
    killed_while_out(desk, pair, nginx)
    sick = pair[0]
    sick.host.run(["systemctl", "mask", "--runtime", "--now", sick.unit])

    wait_for(lambda: "member_sick" in fired(nginx), "the dead-man finds it sick", timeout=90)
    assert nginx.is_out(nginx.members[0])
    with clients(nginx.url) as counted:
        wait_for(lambda: counted.good > 4, "the other one serves")
    assert counted.lost == []

    sick.host.run(["systemctl", "unmask", "--runtime", sick.unit])
    sick.host.run(["systemctl", "start", sick.unit])
    wait_for(lambda: not nginx.is_out(nginx.members[0]), "it is well again, and put back", timeout=120)


def fired(nginx: Nginx) -> str:
    """What the dead-man recorded on the balancer's host."""
    script = "cat /var/lib/changectl/upstreams/*/runs/*/fired.json"
    return str(nginx.host.run(["sh", "-c", script], check=False).stdout)
