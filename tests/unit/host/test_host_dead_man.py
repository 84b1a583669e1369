"""The dead-man as it really runs: a process that outlives whoever armed it and acts when the lease runs out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, keeper, procfs, system
from changectl_host.locks import host_lock
from changectl_host.state import Run, boot_seconds

MODULES = str(Path(keeper.__file__).parents[1])
ROUNDS, RACERS = 200, 4


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def identity(path: Path) -> tuple[int, int]:
    """Whether a file is the very same and untouched."""
    return path.stat().st_ino, path.stat().st_ctime_ns


def written(host: Any, seconds: float = 600.0) -> Path:
    """A change that is armed and written, and a lease that then lasts so long."""
    path: Path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    host.lease(seconds)
    return path


def test_nobody_comes_back_and_the_saved_file_does_within_a_second(host: Any) -> None:
    path = written(host, 0.5)
    deadline = boot_seconds() + host.standing()["lease"]["left"]
    fired = host.fired()
    assert path.read_bytes() == b"old"
    assert 0 <= fired["boot_seconds"] - deadline < 1
    assert (fired["by"], fired["outcome"], fired["files"]) == ("deadman", "restored", {str(path): "restored"})
    assert fired["nonce"] == "first"
    now = host.standing()
    assert (now["armed"], now["lease"]["live"]) == (None, False)
    assert host.wait(lambda: host.keeper() is None)
    assert [event["event"] for event in host.events()][-1] == "fired"


def test_the_sleeper_is_nobodys_child_and_outlives_who_armed_it(host: Any) -> None:
    path = host.edited()
    host.lease()
    args = {"run": "R-1", "generation": 1, "nonce": "first", "state_dir": str(host.state), "only": [str(path)]}
    arming = "import json, sys; from changectl_host import dispatch; print(dispatch('arm', json.loads(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", arming, json.dumps(args)], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": MODULES, "CHANGECTL_RUN": "R-1"})  # fmt: skip
    assert "'keeper': 'process'" in done.stdout
    pid = host.keeper()
    found = procfs.stat(pid)
    assert found is not None
    assert found.session != pid
    assert found.session not in (os.getsid(0), found.parent)
    assert procfs.link(pid, "cwd") == "/"
    assert {procfs.link(pid, f"fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}
    # Who ends the orphans of a run by its mark must not end what keeps watch over it.
    assert procfs.parse_environ(procfs.read(pid, "environ")).get("CHANGECTL_RUN") != "R-1"


def test_a_disarmed_change_stays_and_the_sleeper_ends(host: Any) -> None:
    path = written(host, 0.6)
    assert host.disarm("kept") == {"disarmed": True, "changed": True, "left_behind": []}
    assert host.keeper() is None
    assert host.disarm("kept")["changed"] is False
    time.sleep(0.8)
    assert path.read_bytes() == b"new"
    assert host.standing()["fired"] is None
    assert host.standing()["disarmed"]["outcome"] == "kept"
    assert host.disarm("kept")["disarmed"] is True  # asked again after the lease was over: decided is decided


def test_a_lease_that_is_extended_keeps_the_dead_man_asleep(host: Any) -> None:
    path = written(host, 0.5)
    for _ in range(5):
        time.sleep(0.25)
        host.call("extend", nonce="first")
    assert path.read_bytes() == b"new"
    assert host.fired()["outcome"] == "restored"
    assert path.read_bytes() == b"old"


def test_an_expiry_while_the_saved_files_stand_does_nothing(host: Any) -> None:
    path = host.edited()
    before = identity(path)
    host.lease()
    host.arm(path)
    host.lease(0.2)
    fired = host.fired()
    assert (fired["outcome"], fired["files"]) == ("nothing_to_do", {})
    assert identity(path) == before


def test_a_file_that_somebody_else_edits_is_not_touched_when_the_run_wrote_nothing(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    path.write_bytes(b"theirs")
    host.lease(0.2)
    assert host.fired()["outcome"] == "nothing_to_do"
    assert path.read_bytes() == b"theirs"


def test_a_change_that_went_back_already_is_compared_and_left_alone(host: Any) -> None:
    path = written(host)
    host.call("restore")
    before = identity(path)
    host.lease(0.2)
    fired = host.fired()
    assert (fired["outcome"], fired["files"]) == ("nothing_to_do", {str(path): "already"})
    assert identity(path) == before


def test_after_the_dead_man_acted_an_orphan_can_do_nothing(host: Any) -> None:
    path = written(host, 0.2)
    fired = host.fired()
    assert fired["generation"] > 1
    assert refused(lambda: host.write(path, b"old", b"new")).reason == "stale_generation"
    for act in (host.disarm, lambda: host.call("extend", nonce="first"), lambda: host.lease(generation=2)):
        failure = refused(act)
        assert failure.reason in ("lease_lost", "stale_generation")
    failure = refused(host.disarm)
    assert failure.details["fired"]["outcome"] == "restored"
    assert refused(lambda: host.arm(path)).reason == "stale_generation"
    assert path.read_bytes() == b"old"


def test_a_later_owner_keeps_it_armed_and_has_a_deadline_of_its_own(host: Any) -> None:
    path = written(host, 0.5)
    pid = host.keeper()
    host.lease(60, generation=2, nonce="second")
    time.sleep(0.8)
    assert path.read_bytes() == b"new"
    assert host.keeper() == pid
    assert host.standing()["armed"]["nonce"] == "second"
    assert refused(host.disarm).reason == "lease_lost"
    host.lease(0.3, generation=2, nonce="second")
    assert host.fired()["nonce"] == "second"
    assert path.read_bytes() == b"old"


def test_the_dead_man_waits_for_a_change_in_progress(host: Any) -> None:
    path = written(host, 0.3)
    with host_lock(str(host.state)):
        time.sleep(1)
        assert host.standing()["fired"] is None
        assert path.read_bytes() == b"new"
    host.fired()
    assert path.read_bytes() == b"old"


def test_what_was_disarmed_while_the_dead_man_waited_stays(host: Any) -> None:
    path = written(host, 1.0)
    with host_lock(str(host.state)):
        time.sleep(0.8)
        answer: list[Any] = []
        other = threading.Thread(target=lambda: answer.append(host.disarm("kept")))
        other.start()
        other.join()
        assert answer[0]["disarmed"]
        time.sleep(0.4)
    time.sleep(0.5)
    assert path.read_bytes() == b"new"
    assert host.standing()["fired"] is None


def test_a_way_back_that_fails_is_tried_again_and_stays_armed_meanwhile(host: Any) -> None:
    path = written(host)
    path.write_bytes(b"theirs")
    host.lease(0.2)
    host.wait(lambda: (host.standing()["fired"] or {}).get("outcome") == "failed")
    now = host.standing()
    assert (now["fired"]["state"], now["fired"]["reason"]) == ("acting", "changed_by_other")
    assert now["armed"] is not None
    assert refused(lambda: host.lease(run="R-2", nonce="other")).reason == "armed_by_other"
    path.write_bytes(b"new")  # the stranger's edit is gone
    fired = host.fired()
    assert fired["tries"] == 2
    assert path.read_bytes() == b"old"
    assert host.lease(run="R-2", nonce="other")["taken_over"]["run"] == "R-1"


def test_a_lease_file_that_cannot_be_read_does_not_stop_the_dead_man(host: Any, host_folder: Path) -> None:
    path = written(host, 1.5)
    time.sleep(1)  # it knows the deadline by now
    (host_folder / "lease.json").write_bytes(b"{torn")
    assert path.read_bytes() == b"new"
    host.wait(lambda: path.read_bytes() == b"old")
    host.wait(lambda: host.keeper() is None)
    assert host.standing()["fired"]["outcome"] == "restored"


def test_a_service_comes_back_on_the_saved_file(host: Any, free_port: int) -> None:
    server = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), None).serve_forever()"
    path = host.edited()
    manager = {"command": {"start": [sys.executable, "-c", server, str(free_port)], "pid": {"port": free_port}}}
    first = host.call("service", manager=manager, action="start")["started_pid"]
    first = first or host.wait(lambda: procfs.port_owner(free_port))
    host.lease()
    staged = host.stage(b"new")
    settings = {"stop_timeout": 3}
    arm = {"nonce": "first", "only": [str(path)], "manager": manager, "service": settings}
    answer = host.call("change", writes=[{"path": str(path), "expect": system.sha256(b"old"), "staged": staged}],
                       manager=manager, service={"action": "restart", **settings}, arm=arm)  # fmt: skip
    assert answer["arm"]["armed"]
    second = host.wait(lambda: procfs.port_owner(free_port))
    host.lease(0.2)
    fired = host.fired(20)
    third = host.wait(lambda: procfs.port_owner(free_port))
    try:
        assert len({first, second, third}) == 3
        assert fired["outcome"] == "restored"
        assert path.read_bytes() == b"old"
        assert [event["action"] for event in host.events() if event["event"] == "service.outcome"] == [
            "start", "restart", "stop", "start"]  # fmt: skip
    finally:
        os.kill(third, signal.SIGKILL)


def test_a_sleeper_that_is_killed_in_the_middle_of_the_way_back_goes_on_when_it_is_started_again(
    host: Any, free_port: int
) -> None:
    path = host.edited()
    mark = host.folder / "stopping"
    stop = [sys.executable, "-c", f"import time; open({str(mark)!r}, 'w'); time.sleep(60)"]
    sleeper = [
        sys.executable,
        "-c",
        f"import socket, time; s = socket.create_server(('', {free_port})); time.sleep(60)",
    ]
    manager = {"command": {"start": sleeper, "stop": stop, "pid": {"port": free_port}}}
    host.call("service", manager=manager, action="start")
    service = host.wait(lambda: procfs.port_owner(free_port))
    host.lease()
    host.arm(path, manager=manager, service={"stop_timeout": 3})
    host.write(path, b"old", b"new")
    host.lease(0.2)
    host.wait(mark.exists)
    os.kill(host.keeper(), signal.SIGKILL)
    host.wait(lambda: host.keeper() is None)
    now = host.standing()
    assert (now["fired"]["state"], now["keeper_running"]) == ("acting", False)
    assert refused(lambda: host.lease(run="R-2", nonce="other")).reason == "armed_by_other"
    os.kill(service, signal.SIGKILL)
    again = subprocess.run(keeper.words(Run("R-1", str(host.state)), "deadman"), check=False, timeout=30)
    assert again.returncode == 0
    fired = host.standing()["fired"]
    assert (fired["outcome"], fired["tries"], path.read_bytes()) == ("restored", 2, b"old")
    os.kill(host.wait(lambda: procfs.port_owner(free_port)), signal.SIGKILL)


def test_a_sleeper_that_is_asked_to_end_ends_and_says_that_it_was_not_done(host: Any) -> None:
    written(host)
    os.kill(host.keeper(), signal.SIGKILL)
    host.wait(lambda: host.keeper() is None)
    with subprocess.Popen(keeper.words(Run("R-1", str(host.state)), "deadman")) as process:
        host.wait(host.keeper)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 75


@pytest.fixture
def racers(place: Path, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    made = []
    for number in range(RACERS):
        folder = place / str(number)
        folder.mkdir()
        environment = {**os.environ, "PYTHONPATH": MODULES, "CHANGECTL_HOST_DIR": str(tmp_path / f"host-{number}")}
        words = [sys.executable, str(Path(__file__).parent / "disarm_race.py"), str(folder), str(ROUNDS // RACERS)]
        made.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment))
    yield made
    for racer in made:
        racer.kill()
        racer.wait()


def test_keeping_against_the_deadline_has_two_ends_in_200_rounds(racers: list[subprocess.Popen[str]]) -> None:
    """The long one: each round starts a sleeper, about a minute in all."""
    ends = [end for racer in racers for end in json.loads(racer.communicate(timeout=300)[0])]
    assert len(ends) == ROUNDS
    assert set(ends) == {"kept", "restored"}
    assert min(ends.count("kept"), ends.count("restored")) >= 10, "the rounds did not meet the deadline"
