"""What a host tells of itself to a doctor: tried for real, and gone a moment later."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, doctor_folder


def told(host: Any) -> dict[str, Any]:
    found: dict[str, Any] = host.call("doctor", only=["folders"])["folders"][0]
    return found


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_folder_that_is_not_there_is_tried_above_it_and_nothing_is_made(host: Any) -> None:
    before = everything(host.folder)
    found = told(host)

    assert (found["path"], found["exists"], found["place"]) == (str(host.state), False, str(host.folder))
    assert (found["problem"], found["writes"], found["attributes"], found["acl"]) == (None, "", "", "")
    assert found["free"] > 0
    assert everything(host.folder) == before


def test_the_folder_of_the_lease_is_looked_at_too(host: Any, host_folder: Path) -> None:
    host.lease()

    assert [one["path"] for one in host.call("doctor")["folders"]] == [str(host.state), str(host_folder)]


def test_a_folder_that_others_may_write_into_is_a_problem(host: Any) -> None:
    host.state.mkdir(mode=0o700)
    assert told(host)["problem"] is None
    host.state.chmod(0o777)

    assert "can be written by others (mode 0777)" in told(host)["problem"]


def test_what_a_killed_look_left_is_named_once_it_is_old(host: Any) -> None:
    host.state.mkdir(mode=0o700)
    left = host.state / ".changectl-doctor-x1"
    left.mkdir()
    assert told(host)["stale"] == []
    old = time.time() - 3600
    os.utime(left, (old, old))

    assert told(host)["stale"] == [str(left)]


def test_the_file_system_is_that_of_the_deepest_mount() -> None:
    assert doctor_folder.mounted("/proc")["file_system"] == "proc"
    assert doctor_folder.mounted("/proc/1")["file_system"] == "proc"
    assert doctor_folder.mounted("/")["file_system"] != "proc"


def test_the_keeper_is_told_with_the_python_that_it_runs_on(host: Any) -> None:
    path = host.edited()
    host.lease()
    assert host.call("doctor", only=["keeper"]) == {"keeper": None}
    host.arm(path)

    found = host.call("doctor", only=["keeper"])["keeper"]

    assert (found["pid"], found["kind"], found["executable"]) == (host.keeper(), "process", sys.executable)


def test_a_part_that_does_not_exist_is_refused(host: Any) -> None:
    with pytest.raises(Failure, match="there is no part 'heart'"):
        host.call("doctor", only=["heart"])


def test_nothing_is_left_in_any_folder(host: Any) -> None:
    host.edited()
    before = everything(host.folder)
    host.call("doctor")

    assert everything(host.folder) == before
