"""Several instances of one service on one host: one lease for all, and a snapshot and a dead-man for each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, boot, boot_unit, by_hand, lease, locks, records
from changectl_host.state import Run, read_record

ONE, TWO = "R-1/1", "R-1/2"


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def changed(host: Any, run: str, *, armed: bool = True) -> Path:
    """A change of one instance that is written, and armed before."""
    host.run = run
    path: Path = host.file(f"{run[-1]}.conf", b"old")
    host.call("capture", files=[str(path)])
    if armed:
        host.arm(path)
    host.write(path, b"old", b"new")
    return path


def kept(host: Any, run: str) -> Path:
    path = changed(host, run)
    host.disarm("kept")
    return path


@pytest.fixture
def both(newcomer: Any) -> Any:
    """A host that the run holds for two instances."""
    newcomer.run = ONE
    newcomer.lease()
    newcomer.run = TWO
    newcomer.generation, newcomer.nonce = 2, "second"
    newcomer.lease()
    return newcomer


def test_whoever_holds_the_host_for_one_instance_holds_it_for_all(both: Any) -> None:
    for run in (ONE, TWO):
        both.run = run
        assert both.standing()["lease"]["run"] == "R-1"
        assert both.call("extend", nonce="second")["left"] > 0
    changed(both, TWO, armed=False)
    both.generation = 1  # whoever took it for the first one alone
    assert refused(lambda: changed(both, ONE)).reason == "lease_lost"
    both.generation = 2
    changed(both, ONE, armed=False)


def test_another_run_stays_out_while_any_instance_is_armed(both: Any) -> None:
    both.run = ONE
    changed(both, ONE)
    changed(both, TWO, armed=False)
    assert refused(lambda: both.call("release", nonce="second")).reason == "armed"
    both.run = ONE
    os.kill(both.keeper(), signal.SIGKILL)  # so that nobody acts meanwhile
    record = lease.present()
    assert record is not None
    lease.save({**record, "expired": True})
    failure = refused(lambda: both.lease(run="R-2", nonce="other"))
    assert failure.reason == "armed_by_other"
    assert "/runs/R-1/1/program.pyz restore" in failure.message


def test_the_dead_man_brings_back_the_unconfirmed_one_and_leaves_the_kept_alone(both: Any) -> None:
    stays, goes = kept(both, ONE), changed(both, TWO)
    both.lease(0.3)
    assert both.fired()["outcome"] == "restored"
    assert (stays.read_bytes(), goes.read_bytes()) == (b"new", b"old")
    both.run = ONE
    now = both.standing()
    assert (now["fired"], now["disarmed"]["outcome"]) == (None, "kept")


def test_of_two_that_are_unconfirmed_both_come_back(both: Any) -> None:
    paths = [changed(both, ONE), changed(both, TWO)]
    both.lease(0.3)
    for run in (ONE, TWO):
        both.run = run
        assert both.fired()["outcome"] == "restored"
    assert [path.read_bytes() for path in paths] == [b"old", b"old"]
    both.generation, both.nonce = both.standing()["seen"] + 1, "third"
    both.lease()
    both.give_back()
    both.become(run="R-2", generation=1)  # nothing keeps others away any more


def test_a_later_owner_has_all_of_them(both: Any) -> None:
    paths = [changed(both, ONE), changed(both, TWO)]
    both.generation, both.nonce = 3, "third"
    both.lease()
    for run, outcome in ((ONE, "kept"), (TWO, "reverted")):
        both.run = run
        assert both.standing()["armed"]["nonce"] == "third"
        if outcome == "reverted":
            both.call("restore")
        both.disarm(outcome)
    both.give_back()
    assert [path.read_bytes() for path in paths] == [b"new", b"old"]


def test_nobody_comes_back_below_what_any_instance_has_seen(both: Any) -> None:
    changed(both, TWO)
    both.lease(0.3)
    both.fired()
    both.run = ONE
    seen = both.standing()["seen"]
    assert seen > 2
    assert both.standing()["generation"] in (None, 1, 2)
    assert refused(lambda: both.lease(generation=seen, nonce="late")).reason in ("stale_generation", "lease_lost")
    assert both.lease(generation=seen + 1, nonce="later")["generation"] == seen + 1


def test_a_person_who_brings_one_back_ends_the_lease_and_the_other_one_follows(both: Any) -> None:
    paths = [changed(both, ONE), changed(both, TWO)]
    program = both.state / "runs" / "R-1" / "1" / "program.pyz"
    done = subprocess.run([sys.executable, "-I", str(program), "restore"], capture_output=True, text=True, check=False,
                          env={**os.environ})  # fmt: skip
    assert done.returncode == 0, done.stderr
    both.run = TWO
    assert both.fired()["by"] == "deadman"
    assert [path.read_bytes() for path in paths] == [b"old", b"old"]


def test_what_is_left_names_every_instance_and_the_last_one_takes_the_run_folder_away(both: Any) -> None:
    kept(both, ONE), changed(both, TWO)
    items = [item for item in both.call("leftovers")["items"] if item["what"] in ("run", "lease")]
    assert [(item["what"], item["run"]) for item in items] == [("lease", "R-1"), ("run", ONE), ("run", TWO)]
    both.call("restore")
    both.disarm("reverted")
    for run in (TWO, ONE):
        assert both.run_folder.parent.is_dir()
        both.run = run
        both.call("forget")
    assert not (both.state / "runs" / "R-1").exists()


def test_the_whole_run_is_not_forgotten_while_one_of_its_instances_is_armed(both: Any) -> None:
    kept(both, ONE), changed(both, TWO)
    both.run = "R-1"
    failure = refused(lambda: both.call("forget"))
    assert (failure.reason, "R-1/2" in failure.message) == ("armed", True)
    assert (both.state / "runs" / TWO / "armed.json").is_file()
    both.run = TWO
    both.call("restore")
    both.disarm("reverted")
    both.run = "R-1"
    both.call("forget")
    assert not both.run_folder.exists()


def test_a_program_that_knows_one_folder_for_each_run_keeps_off(both: Any) -> None:
    assert refused(lambda: read_record(lease.path())).reason == "newer_format"
    both.give_back()
    both.become(run="R-2", generation=1)
    assert read_record(lease.path())  # one instance alone is written as it always was


def format_of_lease() -> int:
    record = lease.present()
    assert record is not None
    return int(record["format"])


def by_hand_of_each(both: Any) -> None:
    for run in (ONE, TWO):
        by_hand.restore(Run(run, str(both.state)), restart=False)


def at_boot_of_each(both: Any) -> None:
    for run in (ONE, TWO):
        boot.at_boot(Run(run, str(both.state)), "another-boot", lambda: None, lambda run: None)


def by_their_dead_men(both: Any) -> None:
    for run in (ONE, TWO):
        both.run = run
        os.kill(both.keeper(), signal.SIGCONT)
    both.lease(0.1)


@pytest.mark.parametrize("back", [by_hand_of_each, at_boot_of_each, by_their_dead_men])
def test_once_every_instance_is_back_an_older_program_may_restore_its_own_runs_again(both: Any, back: Any) -> None:
    for run in (ONE, TWO):
        changed(both, run)
        os.kill(both.keeper(), signal.SIGSTOP)  # only who is meant acts
    back(both)
    assert both.wait(lambda: format_of_lease() == 1)
    assert records.armed(Run(ONE, str(both.state))) is records.armed(Run(TWO, str(both.state))) is None


def test_as_long_as_one_instance_is_armed_an_older_program_keeps_off(both: Any) -> None:
    for run in (ONE, TWO):
        changed(both, run)
        os.kill(both.keeper(), signal.SIGSTOP)
    by_hand.restore(Run(ONE, str(both.state)), restart=False)
    assert format_of_lease() == 2
    Path(lease.path()).write_text("{torn")
    with locks.lease_lock():
        lease.expire(Run(TWO, str(both.state)), 3)
    assert format_of_lease() == 2


def test_each_instance_has_a_unit_of_its_own_at_boot(both: Any, tmp_path: Path) -> None:
    runs = [Run(name, str(both.state)) for name in ("R-1", ONE, TWO)]
    names = [boot_unit.name(run) for run in runs]
    assert names == ["changectl-boot.service", "changectl-boot.1.service", "changectl-boot.2.service"]
    changed(both, ONE), changed(both, TWO)
    for run in runs[1:]:
        armed = records.armed(run)
        assert armed is not None
        boot_unit.install(run, armed, [], str(tmp_path))
    assert boot_unit.all_names(str(tmp_path)) == names[1:]
    assert boot_unit.remove(runs[1], str(tmp_path))
    assert boot_unit.all_names(str(tmp_path)) == names[2:]
    assert locks.upstream() is None
