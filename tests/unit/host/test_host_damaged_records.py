"""Records that somebody damaged on the host: as long as the saved files are whole, they come back."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from changectl_host import boot, by_hand, cli, lease
from changectl_host.state import Run

DAMAGED = ["", "{torn", "[]", "\x00" * 64]


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


@pytest.mark.parametrize("name", ["armed.json", "run.json", "fired.json"])
@pytest.mark.parametrize("content", DAMAGED)
def test_the_dead_man_brings_the_saved_file_back_all_the_same(host: Any, name: str, content: str) -> None:
    path = written(host)
    damage(host, name, content)
    host.lease(0.2)
    fired = host.fired()
    assert (fired["outcome"], path.read_bytes()) == ("restored", b"old")
    assert host.standing()["armed"] is None
    assert host.wait(lambda: host.keeper() is None)


@pytest.mark.parametrize("name", ["armed.json", "run.json", "fired.json", "disarmed.json"])
def test_a_person_brings_it_back_by_hand(host: Any, name: str) -> None:
    path = written(host)
    damage(host, name)
    done = by_hand.restore(run_of(host), restart=False)
    assert (done["outcome"], path.read_bytes()) == ("restored", b"old")


def test_the_boot_brings_it_back(host: Any) -> None:
    path = written(host)
    damage(host, "armed.json")
    fired = boot.at_boot(run_of(host), "another-boot", lambda: None, lambda _: None)
    assert fired is not None
    assert (fired["outcome"], path.read_bytes()) == ("restored", b"old")


def test_a_later_owner_takes_over_what_is_still_armed_and_the_decision_counts(host: Any) -> None:
    path = written(host)
    damage(host, "armed.json")
    host.generation, host.nonce = 2, "second"
    host.lease()
    armed = host.standing()["armed"]
    assert (armed["nonce"], armed["generation"]) == ("second", 2)
    assert host.disarm("kept")["disarmed"]
    assert host.standing()["armed"] is None
    assert path.read_bytes() == b"new"


def test_a_second_part_of_the_change_lets_nothing_go_that_was_saved(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"2")
    host.call("capture", files=[str(first), str(second)])
    host.lease()
    host.arm(first)
    damage(host, "armed.json")
    host.arm(second)
    armed = host.standing()["armed"]
    assert (armed["only"], armed.get("damaged")) == ([str(first), str(second)], None)


def test_an_older_generation_stays_shut_out_where_the_number_itself_is_damaged(host: Any) -> None:
    path = written(host)
    host.generation, host.nonce = 2, "second"
    host.lease()
    host.write(path, b"new", b"newer")
    damage(host, "run.json")
    host.generation = 1
    with pytest.raises(Exception, match="taken over by generation 2"):
        host.write(path, b"newer", b"late")


def test_another_run_may_not_have_the_host_before_the_file_is_back(host: Any) -> None:
    written(host)
    damage(host, "armed.json")
    held = lease.present()
    assert held is not None
    lease.save({**held, "deadline": 0.0})
    host.run = "R-2"
    with pytest.raises(Exception, match="not brought back yet"):
        host.lease(nonce="theirs")


def test_the_host_says_in_words_that_its_record_is_damaged(host: Any) -> None:
    written(host)
    damage(host, "armed.json")
    said = io.StringIO()
    with redirect_stdout(said):
        cli.main(["status", "--run", host.run, "--state-dir", str(host.state)])
    assert "armed: its record is damaged" in said.getvalue()
