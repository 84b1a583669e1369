"""Arming: whoever hears "armed" is watched over, and whatever fails or is killed on the way leaves nothing half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, keeper, system

MODULES = str(Path(keeper.__file__).parents[1])
ARM = (
    "import json, sys; from changectl_host import dispatch; print(json.dumps(dispatch('arm', json.loads(sys.argv[1]))))"
)
HEAD = {"sequence": 7, "hash": "ab" * 32}


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def test_arming_says_who_keeps_watch_and_whether_it_survives_a_restart(host: Any) -> None:
    path = host.edited()
    host.lease()
    answer = host.arm(path)
    assert (answer["armed"], answer["changed"], answer["keeper"], answer["reboot_safe"]) == (
        True,
        True,
        "process",
        False,
    )
    assert "does not outlive a restart" in answer["why"]
    assert 500 < answer["left"] <= 600
    assert host.standing()["keeper_running"] is True
    again = host.arm(path)
    assert again["changed"] is False
    assert {**again, "changed": True, "left": 0} == {**answer, "left": 0}


def test_arming_needs_a_live_lease_of_this_owner(host: Any) -> None:
    path = host.edited()
    host.give_back()
    assert refused(lambda: host.arm(path)).reason == "no_lease"
    host.lease(0.1)
    time.sleep(0.15)
    assert refused(lambda: host.arm(path)).reason == "lease_lost"
    host.lease()
    assert refused(lambda: host.call("arm", nonce="other", only=None)).reason == "lease_lost"
    assert host.standing()["armed"] is None
    assert host.keeper() is None


def test_what_was_not_saved_whole_is_not_armed(host: Any) -> None:
    host.lease()
    assert refused(host.arm).reason == "not_captured"
    path = host.edited()
    assert refused(lambda: host.arm(path, host.etc / "other.conf")).reason == "not_captured"
    (host.run_folder / "snapshot" / "files" / system.sha256(b"old")).unlink()
    assert refused(lambda: host.arm(path)).reason == "damaged_state"
    assert host.standing()["armed"] is None


def test_a_second_part_of_a_change_adds_its_files_and_lets_nothing_go(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"2")
    host.call("capture", files=[str(first), str(second)])
    host.lease()
    manager = {"command": {"start": ["true"], "pid": {"file": "/no/such/pid"}}}
    host.arm(first, manager=manager, service={"stop_timeout": 3})
    pid = host.keeper()
    assert host.arm(second)["changed"]
    armed = host.standing()["armed"]
    assert armed["only"] == [str(first), str(second)]
    assert (armed["manager"], armed["service"]) == (manager, {"stop_timeout": 3})
    assert host.keeper() == pid


def test_without_a_list_all_saved_files_are_watched_over(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm()
    assert host.standing()["armed"]["only"] == [str(path)]


def test_a_lease_cannot_be_given_back_nor_the_folder_forgotten_while_armed(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    assert refused(lambda: host.call("release", nonce="first")).reason == "armed"
    assert refused(lambda: host.call("forget")).reason == "armed"
    host.disarm("accepted")
    assert host.call("release", nonce="first") == {"released": True}
    assert host.call("forget")["changed"]


def test_what_was_decided_is_not_armed_again_under_the_same_lease(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    host.disarm("reverted")
    assert refused(lambda: host.arm(path)).reason == "disarmed"
    host.lease(generation=2, nonce="second")
    assert host.call("arm", generation=2, nonce="second", only=[str(path)])["changed"]
    assert host.standing()["keeper_running"] is True


def test_disarming_what_never_was_armed_is_no_decision(host: Any) -> None:
    host.edited()
    host.lease()
    assert host.disarm() == {"disarmed": False, "changed": False, "left_behind": []}
    assert host.standing()["disarmed"] is None
    assert refused(lambda: host.disarm("perhaps")).reason == "bad_arguments"


def test_the_host_remembers_how_far_the_journal_went(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path, head=HEAD)
    host.disarm("kept", head={"sequence": 9, "hash": "cd" * 32})
    host.disarm("kept", head={"sequence": 10, "hash": "ef" * 32})  # asked again: nothing is witnessed twice
    heads = host.call("witness")["heads"]
    assert [(head["run"], head["what"], head["sequence"]) for head in heads] == [
        ("R-1", "armed", 7),
        ("R-1", "disarmed", 9),
    ]
    assert host.standing()["disarmed"]["head"]["sequence"] == 9
    assert refused(lambda: host.arm(path, head={"sequence": "7"})).reason == "bad_arguments"


def test_another_run_is_told_where_the_unfinished_one_lies_and_how_to_end_it(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    os.kill(host.keeper(), signal.SIGKILL)
    host.lease(0.1)
    time.sleep(0.15)
    failure = refused(lambda: host.lease(run="R-2", nonce="other"))
    assert failure.reason == "armed_by_other"
    assert failure.details == {"run": "R-1", "owner": "kim", "controller": "desk-1", "folder": str(host.run_folder)}
    assert f"python3 {host.run_folder}/program.pyz restore --restart" in failure.message
    # Its own owner may not come back unseen, only somebody who takes it over.
    assert refused(lambda: host.lease(60)).reason == "lease_lost"
    assert host.lease(60, generation=2, nonce="second")["taken_over"]["run"] == "R-1"
    assert host.standing()["keeper_running"] is False
    assert host.call("arm", generation=2, nonce="second", only=[str(path)])["armed"]
    assert host.standing()["keeper_running"] is True


@pytest.mark.parametrize("call", ["change", "bring_back", "service"])
def test_a_call_that_cannot_be_armed_does_nothing(host: Any, call: str) -> None:
    path = host.edited()
    started = host.folder / "started"
    manager = {"command": {"start": ["touch", str(started)], "pid": {"file": "/no/such/pid"}}}
    writes = [{"path": str(path), "expect": system.sha256(b"old"), "staged": host.stage(b"new")}]
    settings = {"action": "start"} if call == "service" else {"writes": writes}
    arm = {"nonce": "first", "only": [str(path)]}
    host.give_back()
    failure = refused(lambda: host.call(call, manager=manager, arm=arm, **settings))
    assert (failure.reason, failure.details["armed"]) == ("no_lease", False)
    assert path.read_bytes() == b"old"
    assert not started.exists()
    host.lease()
    assert host.call(call, manager=manager, arm=arm, **settings)["arm"]["armed"]
    assert host.keeper()
    assert path.read_bytes() == (b"new" if call == "change" else b"old")
    assert started.exists() == (call == "service")


def test_an_arming_call_that_is_killed_never_leaves_armed_without_somebody_who_keeps_watch(host: Any) -> None:
    path = host.edited()
    args = {"run": "R-1", "state_dir": str(host.state), "only": [str(path)], "head": HEAD}
    environment = {**os.environ, "PYTHONPATH": MODULES}
    heard = 0
    for attempt in range(10):
        generation = host.standing()["generation"] + 1
        owner = {"generation": generation, "nonce": f"n{attempt}"}
        host.lease(**owner)
        process = subprocess.Popen([sys.executable, "-c", ARM, json.dumps({**args, **owner})], stdout=subprocess.PIPE,
                                   env=environment)  # fmt: skip
        time.sleep(0.1 + 0.1 * attempt)
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        now = host.standing()
        if out:
            heard += 1
            assert json.loads(out)["armed"]
            assert now["keeper_running"]
        # Whoever comes back finds it armed or not, and can finish either.
        assert host.call("arm", only=[str(path)], **owner)["armed"]
        assert host.standing()["keeper_running"]
        assert host.call("disarm", outcome="accepted", **owner)["left_behind"] == []
        host.wait(lambda: host.keeper() is None)
    assert 0 < heard < 10, "the kills did not meet the call"


@pytest.fixture
def full_disk(place: Path) -> Iterator[Path]:
    """A state folder on a small file system of its own; needs root, as CI has it."""
    folder = place / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
@pytest.mark.parametrize("room", [0, 4096, 8192, 16384])
def test_a_full_disk_arms_nothing(newcomer: Any, full_disk: Path, room: int) -> None:
    host = newcomer
    host.state = full_disk / "state"
    host.lease()
    path = host.edited()
    fill(full_disk, room)
    reason = outcome(lambda: host.arm(path, head=HEAD))
    assert reason in ("disk_full", "no_keeper", "armed")
    assert room or reason == "disk_full"
    assert (host.standing()["armed"] is not None) == (reason == "armed")
    host.wait(lambda: (host.keeper() is not None) == (reason == "armed"))
    assert not list(host.run_folder.glob("*.part"))
    (full_disk / "filling").unlink()
    assert host.arm(path)["armed"]
    assert host.keeper()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_a_disk_that_fills_up_after_arming_does_not_stop_the_way_back(newcomer: Any, full_disk: Path) -> None:
    host = newcomer
    host.state = full_disk / "state"
    host.lease()
    path = host.edited()
    host.arm(path)
    host.write(path, b"old", b"new")
    host.lease(2)
    fill(full_disk, 0)
    assert host.fired()["outcome"] == "restored"
    assert path.read_bytes() == b"old"
    assert host.standing()["armed"] is None


def outcome(act: Any) -> str:
    try:
        return "armed" if act()["armed"] else "not armed"
    except Failure as failure:
        return failure.reason


def fill(folder: Path, room: int) -> None:
    """Leave exactly so much room on a small file system."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    with (folder / "filling").open("wb") as out:
        out.write(b"x" * (free - room))
        out.flush()
        os.fsync(out.fileno())
    left = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    assert left == room


def test_a_folder_of_today_without_any_of_this_is_understood(host: Any) -> None:
    host.edited()
    host.give_back()
    now = host.standing()
    assert {name: now[name] for name in ("lease", "armed", "disarmed", "fired", "keeper_running", "generation")} == {
        "lease": None, "armed": None, "disarmed": None, "fired": None, "keeper_running": None, "generation": 1,
    }  # fmt: skip
    assert host.call("witness") == {"heads": []}
    assert host.call("standing", run="R-9")["generation"] is None


@pytest.mark.parametrize("name", ["armed", "disarmed", "fired"])
def test_a_newer_programs_records_are_refused_and_left_alone(host: Any, name: str) -> None:
    path = host.edited()
    host.lease()
    file = host.run_folder / f"{name}.json"
    if name != "armed":
        host.arm(path)
    file.write_text(json.dumps({"format": 2, "nonce": "first"}))
    for act in (host.standing, lambda: host.arm(path), host.disarm):
        assert refused(act).reason == "newer_format"
    assert json.loads(file.read_text())["format"] == 2
