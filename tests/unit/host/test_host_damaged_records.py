"""Records that somebody damaged on the host: as long as the saved files are whole, they come back, and nothing else."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, boot, by_hand, cli, keeper, lease, records
from changectl_host.state import Run

DAMAGED = ["", "{torn", "[]", "{}", '{"format": "x"}', "\x00" * 64]
EACH = pytest.mark.parametrize("content", DAMAGED, ids=["empty", "torn", "list", "bare", "odd format", "zeros"])


def written(host: Any) -> Path:
    path: Path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    return path


def run_of(host: Any) -> Run:
    return Run(host.run, str(host.state))


def damage(host: Any, name: str, content: str = "{torn") -> None:
    (host.run_folder / name).write_text(content)


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


@pytest.mark.parametrize("name", ["armed.json", "run.json", "fired.json"])
@EACH
def test_the_dead_man_brings_the_saved_file_back_all_the_same(host: Any, name: str, content: str) -> None:
    path = written(host)
    damage(host, name, content)
    host.lease(0.2)
    fired = host.fired()
    assert (fired["outcome"], path.read_bytes()) == ("restored", b"old")
    assert host.standing()["armed"] is None
    assert host.wait(lambda: host.keeper() is None)


def test_the_service_is_restarted_as_it_was_armed(host: Any, tmp_path: Path) -> None:
    path, started = host.edited(), tmp_path / "started"
    manager = {"command": {"start": ["sh", "-c", f"echo >> {started}"], "pid": {"file": "/no/such/pid"}}}
    host.lease()
    host.arm(path, manager=manager, service={"stop_timeout": 1})
    host.write(path, b"old", b"new")
    damage(host, "armed.json")
    host.lease(0.2)
    assert (host.fired()["outcome"], path.read_bytes()) == ("restored", b"old")
    assert started.read_text() == "\n"


def test_what_somebody_else_edited_in_another_saved_file_stands_in_nobody_s_way(host: Any) -> None:
    mine, theirs = host.file("mine.conf", b"old"), host.file("theirs.conf", b"1")
    host.call("capture", files=[str(mine), str(theirs)])
    host.lease()
    host.arm(mine)
    host.write(mine, b"old", b"new")
    theirs.write_bytes(b"2")
    damage(host, "armed.json")
    host.lease(0.2)
    assert host.fired()["outcome"] == "restored"
    assert (mine.read_bytes(), theirs.read_bytes()) == (b"old", b"2")


@pytest.mark.parametrize("name", ["armed.json", "run.json", "fired.json", "disarmed.json"])
def test_a_person_brings_it_back_by_hand_and_the_host_can_tell_again(host: Any, name: str) -> None:
    path = written(host)
    damage(host, name)
    done = by_hand.restore(run_of(host), restart=False)
    assert (done["outcome"], path.read_bytes()) == ("restored", b"old")
    standing = host.standing()
    assert (standing["armed"], standing["disarmed"], standing["fired"]["outcome"]) == (None, None, "restored")
    assert host.wait(lambda: host.keeper() is None)


def test_where_nothing_was_saved_nobody_s_lease_is_ended_by_hand(host: Any) -> None:
    host.lease()
    assert refused(lambda: by_hand.restore(Run("R-7", str(host.state)), restart=False)).reason == "not_captured"
    assert refused(lambda: by_hand.restore(run_of(host), restart=False)).reason == "not_captured"
    held = lease.present()
    assert held is not None
    assert lease.live(held)


def test_the_boot_brings_it_back(host: Any) -> None:
    path = written(host)
    damage(host, "armed.json")
    fired = boot.at_boot(run_of(host), "another-boot", lambda: None, lambda _: None)
    assert fired is not None
    assert (fired["outcome"], path.read_bytes()) == ("restored", b"old")


def taken_over(host: Any) -> None:
    host.generation, host.nonce = 2, "second"
    host.lease()


def test_a_later_owner_takes_over_what_is_still_armed_and_the_decision_counts(host: Any) -> None:
    path = written(host)
    damage(host, "armed.json")
    taken_over(host)
    armed = host.standing()["armed"]
    assert (armed["nonce"], armed["generation"], armed["only"]) == ("second", 2, [str(path)])
    assert host.disarm("kept")["disarmed"]
    assert host.standing()["armed"] is None
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("owner", [lambda _: None, taken_over], ids=["the first owner", "a later owner"])
def test_what_was_kept_stays_kept_where_the_call_was_killed_before_it_had_tidied_up(host: Any, owner: Any) -> None:
    path = written(host)
    owner(host)
    armed = (host.run_folder / "armed.json").read_bytes()
    host.disarm("kept")
    damage(host, "armed.json", armed.decode()[:-9])
    assert host.standing()["armed"] is None
    assert host.disarm("kept")["disarmed"]
    assert not (host.run_folder / "armed.json").exists()
    assert path.read_bytes() == b"new"


def test_armed_again_after_a_way_back_it_is_armed_although_its_record_is_damaged(host: Any) -> None:
    path = written(host)
    by_hand.restore(run_of(host), restart=False)
    host.generation, host.nonce = 5, "fifth"
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"newer")
    damage(host, "armed.json")
    assert host.standing()["armed"]["only"] == [str(path)]
    host.lease(0.2)
    host.wait(lambda: host.standing()["armed"] is None)
    assert path.read_bytes() == b"old"


def test_a_second_part_of_the_change_lets_nothing_go_that_was_armed(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"2")
    host.call("capture", files=[str(first), str(second)])
    host.lease()
    host.arm(first)
    damage(host, "armed.json")
    host.arm(second)
    armed = host.standing()["armed"]
    assert (armed["only"], armed.get("damaged")) == ([str(first), str(second)], None)


@pytest.mark.parametrize("call", ["restore", "bring_back"])
def test_a_controller_brings_back_what_a_damaged_record_says_was_begun(host: Any, call: str) -> None:
    path = written(host)
    damage(host, "fired.json")
    taken_over(host)
    assert host.call(call, only=[str(path)])["changed"]
    assert path.read_bytes() == b"old"
    assert host.disarm("reverted")["disarmed"]


def test_a_way_back_that_ended_is_still_known_to_have_ended(host: Any) -> None:
    path = written(host)
    host.lease(0.1)
    host.fired()
    damage(host, "fired.json")
    fired = host.standing()["fired"]
    assert (fired["damaged"], fired["state"], fired["by"], fired["outcome"]) == (True, "done", "deadman", "restored")
    # What somebody writes after it is somebody's own, equal bytes or not.
    path.write_bytes(b"new")
    host.generation, host.nonce = 9, "ninth"
    host.lease()
    assert refused(lambda: host.call("restore", only=[str(path)])).reason == "changed_by_other"


def test_an_earlier_way_back_says_nothing_of_one_that_was_begun_since(host: Any) -> None:
    path = written(host)
    by_hand.restore(run_of(host), restart=False)
    host.generation, host.nonce = 5, "fifth"
    host.lease()
    host.arm(path)
    damage(host, "fired.json")
    fired = records.fired(run_of(host))
    assert fired is not None
    assert fired["state"] == "acting"


def test_nobody_hears_kept_while_a_way_back_was_begun_and_its_record_is_damaged(host: Any) -> None:
    path = written(host)
    run = run_of(host)
    header = json.loads((host.run_folder / "run.json").read_text())
    (host.run_folder / "run.json").write_text(json.dumps({**header, "generation": 2}))  # as whoever begins one does
    damage(host, "fired.json")
    host.generation, host.nonce = 3, "third"
    host.lease()
    assert records.fired(run) == {"damaged": True, "state": "acting", "nonce": None, "generation": 2}
    assert refused(lambda: host.disarm("kept")).reason == "lease_lost"
    assert path.read_bytes() == b"new"


def test_an_older_generation_stays_shut_out_where_the_number_itself_is_damaged(host: Any) -> None:
    path = written(host)
    taken_over(host)
    host.write(path, b"new", b"newer")
    damage(host, "run.json")
    host.generation = 1
    assert refused(lambda: host.write(path, b"newer", b"late")).reason == "stale_generation"


def test_another_run_may_not_have_the_host_before_the_file_is_back(host: Any) -> None:
    written(host)
    damage(host, "armed.json")
    held = lease.present()
    assert held is not None
    lease.save({**held, "deadline": 0.0})
    assert keeper.running(run_of(host)) is not None
    host.run = "R-2"
    assert refused(lambda: host.lease(nonce="theirs")).reason == "armed_by_other"


@pytest.mark.parametrize("name", ["armed.json", "fired.json", "disarmed.json"])
def test_the_host_says_in_words_which_record_is_damaged(host: Any, name: str) -> None:
    path = written(host)
    damage(host, name)
    said = io.StringIO()
    with redirect_stdout(said):
        cli.main(["status", "--run", host.run, "--state-dir", str(host.state)])
    assert f"{name}: damaged" in said.getvalue()
    assert f"for {path}" in said.getvalue()
    assert "None" not in said.getvalue()
