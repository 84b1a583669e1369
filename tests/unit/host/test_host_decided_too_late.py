"""A decision that comes after the way back began: nobody hears "kept" while the saved files come, or stand there."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, procfs


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def taken_over(host: Any) -> None:
    """Somebody takes the run over, with a lease that lasts."""
    host.generation, host.nonce = host.standing()["generation"] + 1, "later"
    host.lease()


def written(host: Any, **arming: Any) -> Path:
    path: Path = host.edited()
    host.arm(path, **arming)
    host.write(path, b"old", b"new")
    return path


def slow_to_stop(host: Any, port: int) -> dict[str, Any]:
    """A service whose stop takes seconds, so that a way back goes on for as long; `stopping` appears when it begins."""
    server = f"import socket, time; s = socket.create_server(('', {port})); time.sleep(60)"
    stop = f"import time; open({str(host.folder / 'stopping')!r}, 'w'); time.sleep(60)"
    manager = {"command": {"start": [sys.executable, "-c", server], "stop": [sys.executable, "-c", stop],
                           "pid": {"port": port}}}  # fmt: skip
    host.call("service", manager=manager, action="start")
    host.wait(lambda: procfs.port_owner(port))
    return manager


@pytest.mark.parametrize("outcome", ["kept", "accepted"])
def test_a_way_back_that_goes_on_is_not_overtaken_by_a_decision_of_a_later_owner(
    host: Any, free_port: int, outcome: str
) -> None:
    manager = slow_to_stop(host, free_port)
    path = written(host, manager=manager, service={"stop_timeout": 2})
    host.lease(0.2)
    host.wait((host.folder / "stopping").exists)
    taken_over(host)
    assert path.read_bytes() == b"new"

    failure = refused(lambda: host.disarm(outcome))
    assert (failure.reason, failure.details["fired"]["state"]) == ("lease_lost", "acting")
    host.fired(20)
    assert path.read_bytes() == b"old"
    failure = refused(lambda: host.disarm(outcome))
    assert (failure.reason, failure.details["fired"]["outcome"]) == ("lease_lost", "restored")
    assert host.standing()["disarmed"] is None
    assert host.disarm("reverted")["changed"]
    os.kill(host.wait(lambda: procfs.port_owner(free_port)), signal.SIGKILL)


def test_a_way_back_that_failed_keeps_a_change_from_being_called_kept_but_a_person_may_accept_what_stands(
    host: Any,
) -> None:
    path = written(host)
    path.write_bytes(b"theirs")
    host.lease(0.2)
    host.wait(lambda: (host.standing()["fired"] or {}).get("outcome") == "failed")
    taken_over(host)

    failure = refused(lambda: host.disarm("kept"))
    assert (failure.reason, failure.details["fired"]["outcome"]) == ("lease_lost", "failed")
    assert "reverted" in failure.message
    time.sleep(2.5)  # the sleeper's next try would be now
    assert host.disarm("accepted")["changed"]
    assert (path.read_bytes(), host.standing()["armed"]) == (b"theirs", None)
    host.wait(lambda: host.keeper() is None)


def test_what_is_armed_anew_after_a_settled_way_back_can_be_kept(host: Any) -> None:
    path = written(host)
    host.lease(0.2)
    assert host.fired()["outcome"] == "restored"
    host.wait(lambda: host.keeper() is None)
    taken_over(host)
    host.arm(path)
    host.write(path, b"old", b"new")

    assert host.disarm("kept")["changed"]
    assert path.read_bytes() == b"new"


def test_a_change_that_was_only_taken_over_in_time_can_be_kept(host: Any) -> None:
    path = written(host)
    taken_over(host)
    assert host.disarm("kept")["changed"]
    assert path.read_bytes() == b"new"
