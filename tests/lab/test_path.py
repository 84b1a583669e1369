"""The load takes the users' way, through a real nginx: each figure says so, and nothing is asked beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.lab.desk import ANY_FIGURES, Desk, wait_for
from tests.lab.harness.balancer import FILE, Nginx
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import describe_service
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(360, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
TRAFFIC = f'traffic: {{nginx: {{host: c1, file: {FILE}, upstream: chat, member: "{{{{ ansible_host }}}}:8000"}}}}\n'
CHANGE = "{parameter: {name: parallel, from: 4, to: 6}}"
ALONE, LOG, PORT = "/etc/nginx/conf.d/alone.conf", "/var/log/nginx/alone.log", 8091


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
    c1.run(["rm", "-f", ALONE, LOG])
    made.uninstall()


def laid_out(desk: Desk, pair: list[LlamaService], nginx: Nginx, leads_to: dict[str, str]) -> None:
    """The first instance has a way of its own through nginx; `leads_to`: where that really ends."""
    ways = "".join(
        f"  location /{name}/ {{ proxy_pass http://{member}/; proxy_buffering off; proxy_read_timeout 120s; }}\n"
        for name, member in leads_to.items()
    )
    nginx.host.write_file(ALONE, f"server {{\n  listen {PORT};\n  access_log {LOG};\n{ways}}}\n")
    nginx.host.run(["systemctl", "reload", "nginx.service"])
    own = f"http://127.0.0.1:{pair[0].port}"
    way = f"http://{nginx.host.address}:{PORT}/{{{{ inventory_hostname }}}}"
    text = describe_service(pair[0], levels="{normal: 4 streams}, path: balancer", more=TRAFFIC)
    text = text.replace(f'"{own}"', f'"{own}", through_balancer: "{way}"')
    desk.lay_out(pair[:1], texts={pair[0].name: text}, others=[nginx.host])  # the other one serves users meanwhile


def asked(nginx: Nginx) -> list[str]:
    """The requests that took the second way, by the paths that nginx logged."""
    lines = nginx.host.run(["sh", "-c", f"cat {LOG} || true"]).stdout.splitlines()
    return [line.split()[6] for line in lines if "completions" in line]


def test_a_change_is_measured_through_the_balancer_while_users_are_kept_away(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    laid_out(desk, pair, nginx, {"h1": nginx.members[0]})

    ended = desk.measured(desk.plan(CHANGE, requests=20, more=f"    accept: {ANY_FIGURES}\n"), 0, timeout=330)

    assert {path.split("/")[1] for path in asked(nginx)} == {"h1"}
    for phase in desk.show(ended.document["run"]["run"])["steps"][0]["measurements"]:
        assert phase["conditions"]["path"] == "balancer"
        assert phase["conditions"]["endpoint"] == f"http://{nginx.host.address}:{PORT}/h1"
    assert nginx.host.read_file(FILE).decode() == nginx.text


def test_a_way_that_ends_at_another_instance_is_no_measurement_of_this_one(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    members = [f"{one.host.address}:8000" for one in pair]
    laid_out(desk, pair, nginx, {"h1": members[1]})

    ended = desk.apply(desk.plan(CHANGE), timeout=200)

    assert '"path_unproven"' in ended.out, ended.out + ended.err
    assert ended.code in (3, 5)
    assert [one.get("/props")["total_slots"] for one in pair] == [4, 4]
    assert nginx.host.read_file(FILE).decode() == nginx.text


def test_where_the_way_is_cut_in_a_phase_nothing_is_kept_and_nothing_is_sent_elsewhere(
    desk: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    laid_out(desk, pair, nginx, {"h1": nginx.members[0]})
    plan = desk.plan(CHANGE, requests=400, more=f"    accept: {ANY_FIGURES}\n")

    with desk.start("apply", "-i", "hosts.yml", "--json", plan) as process:
        try:
            wait_for(lambda: len(asked(nginx)) > 20, "the first phase is under way", 120)
            nginx.host.run(["rm", ALONE])
            nginx.host.run(["systemctl", "reload", "nginx.service"])
            out, err = process.communicate(timeout=200)
        finally:
            process.kill()

    assert '"path_lost"' in out, out + err
    assert process.returncode in (3, 5)
    assert [one.get("/props")["total_slots"] for one in pair] == [4, 4]
    assert nginx.host.read_file(FILE).decode() == nginx.text
