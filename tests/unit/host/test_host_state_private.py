"""The state folder is ours alone, and what a failed attempt logged is found or named as missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, status


@pytest.mark.parametrize("where", ["", "runs", "runs/R-1"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_into_which_others_may_write_is_not_used(host: Any, where: str, mode: int) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    (host.state / where).chmod(mode)
    for call in ("verify", "restore", "generation"):
        with pytest.raises(Failure) as caught:
            host.call(call)
        assert caught.value.reason == "unsafe_state"
    (host.state / where).chmod(0o755)
    assert host.call("verify")["equal"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_used(host: Any) -> None:
    host.state.mkdir(mode=0o700)
    os.chown(host.state, 65534, 65534)
    with pytest.raises(Failure) as caught:
        host.stage(b"x")
    assert caught.value.reason == "unsafe_state"
    assert list(host.state.iterdir()) == []


def command_manager(port: int) -> dict[str, Any]:
    return {"command": {"start": ["/bin/sh", "-c", "echo loading; echo failed >&2"], "pid": {"port": port}}}


def test_the_log_of_the_last_start_is_the_evidence_where_a_service_has_none_of_its_own(
    host: Any, free_port: int
) -> None:
    manager = command_manager(free_port)
    host.call("service", manager=manager, action="start")
    found = host.call("evidence", manager=manager, since=0)
    assert found["log"] == ["loading", "failed"]
    assert "log" not in found["missing"]


def test_a_log_that_is_not_there_is_named_as_missing(host: Any, free_port: int) -> None:
    manager = command_manager(free_port)
    assert "no log file is known" in host.call("evidence", manager=manager)["missing"]["log"]
    gone = str(host.etc / "gone.log")
    assert gone in host.call("evidence", manager=manager, log_file=gone)["missing"]["log"]


def test_the_log_is_read_from_where_it_ended_before_the_change(host: Any, free_port: int) -> None:
    log = host.file("own.log", b"old\n")
    cursor = status.tail(str(log), None)[1]
    with log.open("ab") as out:
        out.write(b"new\n")
    found = host.call("evidence", manager=command_manager(free_port), log_file=str(log), cursor=cursor)
    assert found["log"] == ["new"]


def test_asking_an_engine_for_its_help_leaves_no_trace(host: Any) -> None:
    found = host.call("help", argv=["/bin/sh", "-c", 'touch "$HOME/h" "$TMPDIR/t" && echo "$HOME" "$TMPDIR"'])
    assert found["exit_status"] == 0
    places = [Path(place) for place in found["text"].split()]
    assert len(places) == 2
    assert not any(place.exists() or Path("/tmp") in place.parents for place in places)
