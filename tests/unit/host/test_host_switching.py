"""A member of a balancer goes out and comes back under a lease of its upstream; the dead-man asks it first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, dispatch, keeper
from changectl_host.locks import of_upstream
from changectl_host.state import Run

UPSTREAM = "command-0123"


class Member:
    """An instance that says how it is."""

    def __init__(self) -> None:
        member = self
        self.status = 200
        self.asked = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                member.asked += 1
                self.send_response(member.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing to be told."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def health(self) -> list[dict[str, Any]]:
        return [{"name": "health", "url": f"http://127.0.0.1:{self.server.server_port}/health", "status": 200}]


class Switch:
    """An upstream whose members are switched by a command: a file says which way."""

    def __init__(self, folder: Path, member: Member) -> None:
        self.state = folder / "switched"
        self.state.write_text("in")
        words = {way: ["/bin/sh", "-c", f"printf {way} > {self.state}"] for way in ("out", "in")}
        self.traffic = {"member": "gpu1:8000", "way": {"command": words}, "health": member.health}
        self.common = {"upstream": UPSTREAM, "run": "R-1.1.1", "generation": 1, "nonce": "n"}

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        return dispatch(name, {**self.common, **args})

    def lease(self, seconds: float = 600.0) -> None:
        self.call("lease", seconds=seconds, owner="kim", controller="desk")
        self.call("capture", files=[])

    def take_out(self) -> dict[str, Any]:
        return self.call("take_out", traffic=self.traffic, arm={"nonce": "n", "only": []})

    def runs_out(self) -> None:
        """A later owner of the same run, who is not heard of for long."""
        self.common.update(generation=2, nonce="m")
        self.call("lease", seconds=0.5, owner="lee", controller="desk")

    @property
    def way(self) -> str:
        return self.state.read_text()


@pytest.fixture
def member() -> Iterator[Member]:
    made = Member()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def switch(tmp_path: Path, member: Member) -> Iterator[Switch]:
    made = Switch(tmp_path, member)
    yield made
    with of_upstream(UPSTREAM) as root:
        found = keeper.running(Run("R-1.1.1", root))
    if found:
        os.kill(found["pid"], signal.SIGKILL)


def wait(host: Any, what: Any, seconds: float = 40.0) -> None:
    host.wait(what, seconds)


def test_a_member_goes_out_with_the_dead_man_armed_and_comes_back(switch: Switch) -> None:
    switch.lease()

    assert switch.take_out()["arm"]["armed"]
    assert switch.way == "out"
    switch.call("put_back", traffic=switch.traffic)

    assert switch.way == "in"
    assert switch.call("disarm", outcome="reverted")["disarmed"]
    assert switch.call("release")["released"]


def test_what_an_upstream_witnesses_is_told_by_its_host_too(host: Any, switch: Switch) -> None:
    switch.lease()
    arm = {"nonce": "n", "only": [], "head": {"sequence": 7, "hash": "ab" * 32}}
    switch.call("take_out", traffic=switch.traffic, arm=arm)

    (head,) = host.call("witness")["heads"]
    assert (head["run"], head["what"], head["sequence"]) == ("R-1.1.1", "armed", 7)


def test_an_upstream_has_a_lease_beside_that_of_the_host_and_of_other_upstreams(host: Any, switch: Switch) -> None:
    switch.lease()

    assert host.standing()["lease"]["run"] == host.run
    assert switch.call("standing")["lease"]["run"] == "R-1.1.1"
    other = dispatch("standing", {"upstream": "nginx-other", "run": "R-1.1.1"})
    assert other["lease"] is None
    with pytest.raises(Failure) as caught:
        switch.call("lease", run="R-2.1.1", seconds=60.0, owner="lee", controller="desk")
    assert caught.value.reason == "held"


@pytest.mark.parametrize("name", ["../etc", "", "a/b", ".hidden", 7])
def test_an_upstream_is_never_a_way_out_of_our_folder(name: object) -> None:
    if not name:
        return
    with pytest.raises(Failure) as caught:
        dispatch("standing", {"upstream": name, "run": "R-1"})
    assert caught.value.reason == "bad_arguments"


def test_a_sick_member_is_not_put_back(switch: Switch, member: Member) -> None:
    switch.lease()
    switch.take_out()
    member.status = 503

    with pytest.raises(Failure) as caught:
        switch.call("put_back", traffic=switch.traffic)

    assert (caught.value.reason, switch.way) == ("member_sick", "out")


def test_a_command_that_fails_is_taken_back(switch: Switch) -> None:
    switch.lease()
    switch.traffic["way"]["command"]["out"] = ["/bin/sh", "-c", f"printf half > {switch.state}; exit 3"]  # type: ignore[index]

    with pytest.raises(Failure) as caught:
        switch.take_out()

    assert (caught.value.reason, switch.way) == ("command_failed", "in")
    assert caught.value.details["back"] == ""


def test_the_dead_man_puts_a_healthy_member_back(host: Any, switch: Switch) -> None:
    switch.lease()
    switch.take_out()
    switch.runs_out()

    wait(host, lambda: switch.way == "in")
    wait(host, lambda: switch.call("standing")["armed"] is None)
    assert switch.call("standing")["fired"]["outcome"] == "restored"


def test_the_dead_man_leaves_a_sick_member_out_says_so_and_puts_it_back_once_it_is_well(
    host: Any, switch: Switch, member: Member
) -> None:
    member.status = 503
    switch.lease()
    switch.take_out()
    switch.runs_out()

    wait(host, lambda: (switch.call("standing")["fired"] or {}).get("reason") == "member_sick")
    assert switch.way == "out"
    member.status = 200
    wait(host, lambda: switch.way == "in")


def test_a_later_owner_takes_over_what_is_out_and_the_dead_man_keeps_still(
    host: Any, switch: Switch, member: Member
) -> None:
    switch.lease(seconds=600.0)
    switch.take_out()
    switch.common.update(generation=2, nonce="m")
    switch.call("lease", seconds=600.0, owner="lee", controller="desk")

    assert switch.call("standing")["armed"]["nonce"] == "m"
    switch.call("put_back", traffic=switch.traffic)
    assert switch.call("disarm", outcome="reverted")["disarmed"]
