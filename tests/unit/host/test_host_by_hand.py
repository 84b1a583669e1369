"""A person on the host, with the program in the run's folder and nothing else; and what lies about on a host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, procfs, system

SERVER = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), None).serve_forever()"


def by_hand(host: Any, *words: str) -> subprocess.CompletedProcess[str]:
    program = host.run_folder / "program.pyz"
    return subprocess.run([sys.executable, program, *words], capture_output=True, text=True, check=False)


def changed(host: Any, **settings: Any) -> Path:
    """A change that is armed and written."""
    path: Path = host.edited()
    host.lease()
    host.arm(path, **settings)
    host.write(path, b"old", b"new")
    return path


def test_a_person_brings_an_armed_run_back_and_shuts_everybody_else_out(host: Any) -> None:
    path = changed(host)
    done = by_hand(host, "restore")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{path}: restored" in done.stdout
    assert "Restart the service" in done.stdout
    assert path.read_bytes() == b"old"
    now = host.standing()
    assert (now["armed"], now["lease"]["live"], now["fired"]["by"]) == (None, False, "hand")
    host.wait(lambda: host.keeper() is None)
    for act in (lambda: host.write(path, b"old", b"new"), host.disarm, lambda: host.call("extend", nonce="first")):
        with pytest.raises(Failure) as caught:
            act()
        assert caught.value.reason in ("stale_generation", "lease_lost")
    with pytest.raises(Failure) as caught:
        host.disarm()
    assert caught.value.details["fired"]["outcome"] == "restored"
    assert host.lease(run="R-2", nonce="other")["taken_over"]["run"] == "R-1"
    assert "Nothing to do" in by_hand(host, "restore").stdout


def test_only_the_files_of_the_change_come_back_where_that_is_known(host: Any) -> None:
    ours, other = host.file("ours.conf", b"old"), host.file("other.conf", b"old")
    host.call("capture", files=[str(ours), str(other)])
    host.lease()
    host.arm(ours)
    host.write(ours, b"old", b"new")
    other.write_bytes(b"theirs")
    assert by_hand(host, "restore").returncode == 0
    assert (ours.read_bytes(), other.read_bytes()) == (b"old", b"theirs")


def test_a_person_restarts_the_service_on_the_saved_files(host: Any, free_port: int) -> None:
    manager = {"command": {"start": [sys.executable, "-c", SERVER, str(free_port)], "pid": {"port": free_port}}}
    host.call("service", manager=manager, action="start")
    before = host.wait(lambda: procfs.port_owner(free_port))
    path = host.file("a.conf", b"old")
    host.call("capture", files=[str(path)], manager=manager, process=True)
    host.write(path, b"old", b"new")
    done = by_hand(host, "restore", "--restart")
    try:
        assert done.returncode == 0, done.stderr
        assert "the service was started" in done.stdout
        assert path.read_bytes() == b"old"
        after = host.wait(lambda: procfs.port_owner(free_port))
        assert after != before
    finally:
        os.kill(procfs.port_owner(free_port) or before, signal.SIGKILL)


def test_what_a_person_cannot_bring_back_stays_armed_and_is_named(host: Any) -> None:
    path = changed(host)
    os.kill(host.keeper(), signal.SIGKILL)
    path.write_bytes(b"theirs")
    done = by_hand(host, "restore")
    assert done.returncode == 3
    assert "changed_by_other" in done.stderr
    assert path.read_bytes() == b"theirs"
    assert host.standing()["armed"] is not None
    assert host.standing()["fired"]["outcome"] == "failed"
    assert "nobody keeps watch now" in by_hand(host, "status").stdout


def test_a_run_that_does_not_say_how_its_service_starts_is_refused_before_anything_is_done(host: Any) -> None:
    path = changed(host)
    done = by_hand(host, "restore", "--restart")
    assert done.returncode == 3
    assert "no_manager" in done.stderr
    assert path.read_bytes() == b"new"
    assert host.standing()["lease"]["live"] is True


def test_status_says_who_holds_the_host_and_when_the_dead_man_acts(host: Any) -> None:
    path = changed(host)
    told = by_hand(host, "status").stdout
    assert "lease: run R-1 of kim on desk-1" in told
    assert f"for {path}" in told
    assert "dead-man: acts in " in told
    host.lease(0.2)
    host.fired()
    told = by_hand(host, "status").stdout
    assert "it is over" in told
    assert "armed: no" in told
    assert "brought back: by the dead-man" in told


def test_a_folder_of_an_older_program_is_brought_back_by_hand(host: Any, host_folder: Path) -> None:
    path = host.edited()
    host.write(path, b"old", b"new")
    host.give_back()
    assert "lease: nobody holds this host" in by_hand(host, "status").stdout
    assert by_hand(host, "restore").returncode == 0
    assert path.read_bytes() == b"old"
    assert not (host_folder / "lease.json").exists()
    assert host.standing()["fired"]["nonce"] is None


def test_a_folder_of_a_newer_program_is_left_alone_by_hand(host: Any) -> None:
    path = changed(host)
    (host.run_folder / "armed.json").write_text(json.dumps({"format": 2}))
    done = by_hand(host, "restore")
    assert done.returncode == 3
    assert "newer_format" in done.stderr
    assert path.read_bytes() == b"new"


def items(host: Any, what: str) -> list[dict[str, Any]]:
    """Ours of one kind; other tests may have processes of their own."""
    found = [item for item in host.call("leftovers")["items"] if item["what"] == what]
    return [item for item in found if what != "sleeper" or item["place"] == str(host.keeper())]


def test_leftovers_are_listed_with_their_owner_and_how_they_go(host: Any) -> None:
    path = changed(host)
    [run], [lease], [sleeper] = items(host, "run"), items(host, "lease"), items(host, "sleeper")
    assert (run["run"], run["armed"], run["removable"]) == ("R-1", True, False)
    assert run["size"] > 0
    assert "restore --restart" in run["how"]
    assert (lease["run"], lease["removable"], lease["owner"]) == ("R-1", False, "kim")
    assert (sleeper["run"], sleeper["removable"]) == ("R-1", False)
    torn = host.etc / ".a.conf.changectl-1-abc"
    torn.write_bytes(b"ne")
    with (host.run_folder / "events.jsonl").open("a") as out:
        event = {"event": "write.intent", "resolved": str(path), "sha256": system.sha256(b"new")}
        out.write(json.dumps({**event, "temporaries": [str(torn)]}) + "\n")
    [temporary] = items(host, "temporary")
    assert (temporary["place"], temporary["run"], temporary["removable"]) == (str(torn), "R-1", False)
    host.disarm("accepted")
    host.call("release", nonce="first")
    assert (items(host, "lease"), items(host, "sleeper")) == ([], [])
    assert items(host, "run")[0]["removable"] is True
    assert items(host, "temporary")[0]["how"] == "cleanup"
    host.call("forget")
    assert items(host, "run") == []


def test_instances_and_runs_of_the_same_folder_are_told_apart(host: Any) -> None:
    host.edited()
    host.become(run="R-1/2")
    host.edited()
    assert [item["run"] for item in items(host, "run")] == ["R-1", "R-1/2"]
