"""A `command` service is started again as whom it ran: user, groups, file mode mask, niceness, processors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, command, process, procfs

NOBODY = 65534
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable  # one that everybody may run
SERVER = """
import http.server, sys
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a service as somebody else")


@pytest.fixture
def manager(host: Any, free_port: int) -> Iterator[dict[str, Any]]:
    host.folder.chmod(0o755)
    home = host.folder / "srv"
    home.mkdir()
    start = [PYTHON, "-c", SERVER, str(free_port)]
    yield {"command": {"start": start, "cwd": str(home), "pid": {"port": free_port}}}
    for item in procfs.everyone():
        if (procfs.link(item.pid, "cwd") or "").startswith(str(home)):
            os.kill(item.pid, signal.SIGKILL)


def found(manager: dict[str, Any]) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pid = command.find(manager["command"])
        if pid is not None:
            return pid
        time.sleep(0.05)
    raise AssertionError("the service did not come up")


def facts(manager: dict[str, Any]) -> dict[str, Any]:
    described = process.describe(found(manager))
    assert described is not None
    return {name: described[name] for name in ("uid", "gid", "groups", "gids", "umask", "nice", "affinity")}


def begin(manager: dict[str, Any], **options: Any) -> subprocess.Popen[bytes]:
    own = manager["command"]
    return subprocess.Popen(own["start"], cwd=own["cwd"], start_new_session=True, umask=0o027, **options)


def restart(host: Any, manager: dict[str, Any], old: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Capture and restart; the old process is this test's own child and has to be collected."""
    answer = host.call("capture", files=[], manager=manager, process=True)
    assert answer["restorable"], answer["problems"]
    pid = os.fork()
    if pid == 0:
        old.wait()
        os._exit(0)
    return dict(host.call("service", manager=manager, action="restart", stop_timeout=5, environment_from_snapshot=True))


@root_only
def test_a_service_of_another_user_stays_that_users(host: Any, manager: dict[str, Any]) -> None:
    cpu = min(os.sched_getaffinity(0))
    with begin(manager, user=NOBODY, group=NOBODY, extra_groups=[7, 9]) as old:
        found(manager)
        os.setpriority(os.PRIO_PROCESS, old.pid, 5)
        os.sched_setaffinity(old.pid, {cpu})
        before = facts(manager)
        assert before == {"uid": NOBODY, "gid": NOBODY, "groups": [7, 9], "gids": [7, 9, NOBODY], "umask": 0o027,
                          "nice": 5, "affinity": [cpu]}  # fmt: skip
        answer = restart(host, manager, old)
    assert answer["not_given"] == []
    assert found(manager) != old.pid
    assert facts(manager) == before


@root_only
def test_a_user_that_the_manager_names_comes_before_the_one_that_it_ran_as(host: Any, manager: dict[str, Any]) -> None:
    manager["command"]["user"] = "nobody"
    with begin(manager) as old:
        found(manager)
        restart(host, manager, old)
    assert facts(manager)["uid"] == NOBODY


@root_only
def test_who_is_not_root_refuses_before_the_stop_what_it_could_not_start_again() -> None:
    child = os.fork()
    if child == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            command.require_user({}, {"uid": NOBODY})
            command.require_user({}, None)
            command.require_user({}, {"uid": 0})
        except Failure as failure:
            os._exit(17 if failure.reason == "other_user" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


def test_what_could_not_be_given_back_is_told_and_the_mask_is_given_by_everybody(
    host: Any, manager: dict[str, Any]
) -> None:
    with begin(manager) as old:
        found(manager)
        answer = restart(host, manager, old)
    assert answer["not_given"] == []
    assert facts(manager)["umask"] == 0o027
