"""One lease for the whole host: who holds it may act, until it runs out or somebody with a higher generation comes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, lease, system
from changectl_host.locks import host_lock
from changectl_host.state import Run

RACER = """
import sys, time
from changectl_host import Failure, dispatch
run, state, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for line in sys.stdin:
    start = float(line)
    while time.monotonic() < start:
        pass
    common = {"run": run, "generation": 1, "nonce": run, "state_dir": state}
    try:
        dispatch("lease", {**common, "owner": "o", "controller": "c", "seconds": 60})
        print("got", flush=True)
    except Failure as failure:
        print(failure.reason, flush=True)
"""


@pytest.fixture
def host(newcomer: Any) -> Any:
    """Here it is told who takes the lease, and when."""
    return newcomer


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def test_a_host_is_held_by_one_run_and_the_refusal_names_it(host: Any) -> None:
    answer = host.lease(60)
    assert (answer["generation"], answer["nonce"], answer["taken_over"]) == (1, "first", None)
    assert 59 < answer["left"] <= 60
    failure = refused(lambda: host.lease(run="R-2", nonce="other"))
    assert failure.reason == "held"
    assert "run R-1 of kim on desk-1" in failure.message
    assert {name: failure.details[name] for name in ("run", "owner", "controller")} == {
        "run": "R-1",
        "owner": "kim",
        "controller": "desk-1",
    }
    assert 59 < failure.details["left"] <= 60
    assert failure.details["since"] == host.standing()["lease"]["since"]


def test_a_step_of_the_same_run_is_another_run(host: Any) -> None:
    host.lease()
    assert refused(lambda: host.lease(run="R-1.2", nonce="other")).reason == "held"


def test_another_state_folder_does_not_make_it_another_host(host: Any, tmp_path: Path) -> None:
    host.lease()
    assert refused(lambda: host.lease(run="R-2", nonce="other", state_dir=str(tmp_path / "s"))).reason == "held"
    assert refused(lambda: host.lease(state_dir=str(tmp_path / "s"), generation=2, nonce="x")).reason == "held"


def test_of_two_processes_that_race_for_a_host_one_gets_it(host: Any, host_folder: Path) -> None:
    rounds = 20
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, run, str(host.state), str(rounds)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path(lease.__file__).parents[1])},
        )
        for run in ("R-1", "R-2")
    ]  # fmt: skip
    winners = set()
    for number in range(rounds):
        start = time.monotonic() + (0.5 if number == 0 else 0.01)
        answers = []
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write(f"{start}\n")
            racer.stdin.flush()
        for racer in racers:
            assert racer.stdout is not None
            answers.append(racer.stdout.readline().strip())
        assert sorted(answers) == ["got", "held"]
        winner = ("R-1", "R-2")[answers.index("got")]
        assert host.call("release", run=winner, nonce=winner) == {"released": True}
        winners.add(winner)
    for racer in racers:
        racer.communicate()
    assert winners <= {"R-1", "R-2"}


def test_a_lease_that_ran_out_is_over_and_the_next_run_hears_whose_it_was(host: Any) -> None:
    host.lease(0.2)
    time.sleep(0.25)
    assert host.standing()["lease"]["live"] is False
    answer = host.lease(run="R-2", nonce="other", owner="lee")
    assert answer["taken_over"]["run"] == "R-1"
    assert answer["taken_over"]["owner"] == "kim"
    assert refused(lambda: host.call("extend", nonce="first")).reason == "lease_lost"


def test_extending_moves_the_deadline_and_a_lease_that_is_over_stays_over(host: Any) -> None:
    host.lease(0.4)
    for _ in range(4):
        time.sleep(0.2)
        assert 0.3 < host.call("extend", nonce="first")["left"] <= 0.4
    time.sleep(0.45)
    failure = refused(lambda: host.call("extend", nonce="first"))
    assert failure.reason == "lease_lost"
    assert failure.details["fired"] is None
    assert "it ran out" in failure.message


def test_a_heartbeat_does_not_wait_for_a_stop_that_goes_on(host: Any) -> None:
    host.lease()
    with host_lock(str(host.state)):
        begun = time.monotonic()
        host.call("extend", nonce="first")
        host.standing()
        assert time.monotonic() - begun < 1


def test_asking_again_after_a_lost_answer_renews_the_same_lease(host: Any) -> None:
    since = host.lease(0.3) and host.standing()["lease"]["since"]
    assert host.lease(60)["taken_over"] is None
    assert host.standing()["lease"]["since"] == since
    assert host.standing()["lease"]["left"] > 50


@pytest.mark.parametrize(("generation", "nonce"), [(2, "other"), (1, "first"), (1, "other")])
def test_an_owner_with_no_higher_generation_is_shut_out(host: Any, generation: int, nonce: str) -> None:
    host.lease(generation=2)
    failure = refused(lambda: host.lease(generation=generation, nonce=nonce))
    assert failure.reason == "stale_generation"
    assert failure.details["generation"] == 2


def test_a_higher_generation_takes_the_run_over_while_its_lease_is_live(host: Any) -> None:
    host.lease()
    answer = host.lease(generation=2, nonce="second", owner="lee")
    assert answer["taken_over"]["owner"] == "kim"
    failure = refused(lambda: host.call("extend", nonce="first"))
    assert failure.reason == "lease_lost"
    assert "generation 2 took it over" in failure.message
    assert host.call("release", nonce="first") == {"released": False}
    assert host.call("extend", generation=2, nonce="second")["left"] > 50


def test_a_generation_that_the_runs_folder_has_shut_out_gets_no_lease(host: Any) -> None:
    host.become(generation=4)
    host.edited()
    host.give_back()
    assert refused(lambda: host.lease(generation=3)).reason == "stale_generation"
    assert host.lease(generation=4)["generation"] == 4


def test_a_lease_that_is_given_back_is_nobodys(host: Any, host_folder: Path) -> None:
    host.lease()
    assert host.call("release", nonce="first") == {"released": True}
    assert host.call("release", nonce="first") == {"released": False}
    assert host.standing()["lease"] is None
    assert not (host_folder / "lease.json").exists()
    assert host.lease(run="R-2", nonce="other")["taken_over"] is None


def test_a_lease_of_another_boot_is_over_whatever_its_deadline_says(host: Any, host_folder: Path) -> None:
    host.lease(3600)
    file = host_folder / "lease.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "boot": "an-earlier-one"}))
    assert host.standing()["lease"]["live"] is False
    assert refused(lambda: host.call("extend", nonce="first")).reason == "lease_lost"
    assert host.lease(run="R-2", nonce="other")["generation"] == 1


def test_a_wall_clock_that_is_wrong_by_hours_changes_nothing(host: Any, host_folder: Path) -> None:
    host.lease(60)
    file = host_folder / "lease.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "granted_at": "1999-01-01T00:00:00+00:00"}))
    assert host.call("extend", nonce="first")["left"] > 59


def test_a_changing_call_needs_the_live_lease_of_its_run_and_generation(host: Any) -> None:
    def require(generation: int, run: str = "R-1") -> None:
        lease.require(Run(run, str(host.state)), generation)

    assert refused(lambda: require(1)).reason == "no_lease"
    host.lease(0.4)
    require(1)
    assert refused(lambda: require(1, "R-2")).reason == "no_lease"
    assert refused(lambda: require(0)).reason == "lease_lost"
    time.sleep(0.45)
    assert refused(lambda: require(1)).reason == "lease_lost"


CHANGES = {
    "capture": {"files": []},
    "stage": {"sha256": system.sha256(b""), "content": ""},
    "write": {"path": "/no/such/file", "expect": "absent", "staged": "absent"},
    "write_all": {"writes": []},
    "restore": {},
    "service": {"action": "start", "manager": {"systemd": {"unit": "x.service"}}},
    "change": {"writes": []},
    "bring_back": {},
    "arm": {"nonce": "first"},
}


@pytest.mark.parametrize("call", CHANGES)
def test_nothing_is_changed_for_a_run_that_does_not_hold_the_host(host: Any, call: str) -> None:
    host.lease()
    host.edited()
    before = sorted(host.folder.rglob("*"))
    host.give_back()
    failure = refused(lambda: host.call(call, **CHANGES[call]))
    assert (failure.reason, "nobody does" in failure.message) == ("no_lease", True)
    host.lease(run="R-2", nonce="theirs")
    failure = refused(lambda: host.call(call, **CHANGES[call]))
    assert (failure.reason, "run R-2 does" in failure.message) == ("no_lease", True)
    host.call("release", run="R-2", nonce="theirs")
    host.lease(0.05)
    time.sleep(0.1)
    assert refused(lambda: host.call(call, **CHANGES[call])).reason == "lease_lost"
    host.lease(generation=2, nonce="second")
    assert refused(lambda: host.call(call, **CHANGES[call])).reason == "lease_lost"
    assert sorted(host.folder.rglob("*")) == before


def test_a_lease_of_another_state_folder_is_none(host: Any, tmp_path: Path) -> None:
    host.lease()
    assert refused(lambda: host.call("capture", files=[], state_dir=str(tmp_path / "s"))).reason == "no_lease"
    assert not (tmp_path / "s" / "runs").exists()


def test_what_nobody_needs_any_more_may_go_without_a_lease(host: Any) -> None:
    host.lease()
    host.edited()
    host.stage(b"new")
    host.give_back()
    assert host.call("cleanup")["changed"]
    assert host.call("forget")["changed"]
    assert not host.run_folder.exists()


@pytest.mark.parametrize(("name", "value"), [("seconds", 0), ("seconds", "60"), ("seconds", True), ("nonce", ""),
                                             ("nonce", None), ("generation", -1), ("run", "../x")])  # fmt: skip
def test_nonsense_is_refused_before_anything_is_written(host: Any, host_folder: Path, name: str, value: Any) -> None:
    assert refused(lambda: host.lease(**{name: value})).reason == "bad_arguments"
    assert not (host_folder / "lease.json").exists()


def test_a_lease_of_a_newer_program_is_not_touched(host: Any, host_folder: Path) -> None:
    host.lease()
    file = host_folder / "lease.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 3}))
    before = file.read_bytes()
    for act in (host.lease, host.standing, lambda: host.call("extend", nonce="first")):
        assert refused(act).reason == "newer_format"
    assert file.read_bytes() == before


def test_the_lease_is_nobody_elses_to_read(host: Any, host_folder: Path) -> None:
    host.lease()
    assert host_folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in host_folder.iterdir())
