"""A way back is done once: what somebody writes afterwards is theirs, also where the run once wrote the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, by_hand
from changectl_host.state import Run

OLD, NEW = b"one\ntwo\nthree\nfour\n", b"one\n2\nthree\nfour\n"


def taken_over(host: Any) -> None:
    host.generation = host.standing()["generation"] + 1
    host.nonce = f"later {host.generation}"
    host.lease()


def written(host: Any, link: bool = False) -> Path:
    path: Path = host.file("a.conf", OLD)
    if link:
        os.link(path, host.folder / "second-name")
    host.call("capture", files=[str(path)])
    host.arm(path)
    host.write(path, OLD, NEW)
    return path


def by_deadman(host: Any) -> None:
    host.lease(0.2)
    host.fired()
    host.wait(lambda: host.keeper() is None)
    taken_over(host)


def by_a_person(host: Any) -> None:
    by_hand.restore(Run(host.run, str(host.state)), restart=False)
    taken_over(host)


def by_its_controller(host: Any) -> None:
    host.call("restore")
    host.disarm("reverted")
    taken_over(host)


WAYS = [by_deadman, by_a_person, by_its_controller]


def refused(act: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


@pytest.mark.parametrize("back", WAYS)
@pytest.mark.parametrize("theirs", [NEW, NEW + b"five\n"])
def test_what_somebody_writes_after_the_way_back_stays(host: Any, back: Any, theirs: bytes) -> None:
    path = written(host)
    back(host)
    assert path.read_bytes() == OLD
    path.write_bytes(theirs)

    assert refused(lambda: host.call("restore")).reason == "changed_by_other"
    assert refused(lambda: host.call("bring_back")).reason == "changed_by_other"
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("back", WAYS)
def test_saved_bytes_are_still_nothing_to_do_and_so_is_a_part_that_is_back(host: Any, back: Any) -> None:
    path = written(host)
    path.write_bytes(NEW + b"five\n")
    back(host)
    assert path.read_bytes() == OLD + b"five\n"
    assert host.call("restore") == {"files": {str(path): "part_already"}, "changed": False}
    assert host.call("verify")["files"][str(path)]["part"] == "back"
    path.write_bytes(OLD)
    assert host.call("restore") == {"files": {str(path): "already"}, "changed": False}


@pytest.mark.parametrize("back", WAYS)
def test_a_file_that_the_run_had_made_is_not_removed_when_somebody_makes_it_again(host: Any, back: Any) -> None:
    path = host.etc / "new.conf"
    host.call("capture", files=[str(path)])
    host.arm(path)
    host.write(path, None, NEW)
    back(host)
    assert not path.exists()
    path.write_bytes(NEW)
    assert refused(lambda: host.call("restore")).reason == "changed_by_other"
    assert path.read_bytes() == NEW


def test_a_half_written_mixture_from_before_the_way_back_is_not_ours_any_more(host: Any) -> None:
    path = written(host, link=True)
    events = host.run_folder / "events.jsonl"
    lines = [line for line in events.read_text().splitlines() if '"write.outcome"' not in line]
    events.write_text("\n".join(lines) + "\n")  # as if the write had been cut off
    host.call("restore")
    lines = [line for line in events.read_text().splitlines() if '"restore.outcome"' not in line]
    events.write_text("\n".join(lines) + "\n")
    host.disarm("reverted")
    path.write_bytes(NEW[:6] + OLD[6:])
    assert refused(lambda: host.call("restore")).reason == "changed_by_other"


def test_what_the_run_writes_anew_is_its_own_again(host: Any) -> None:
    path = written(host)
    by_its_controller(host)
    host.arm(path)
    host.write(path, OLD, NEW)
    assert host.call("restore")["files"] == {str(path): "restored"}


def test_a_kept_change_can_still_be_taken_back_later(host: Any) -> None:
    path = written(host)
    host.disarm("kept")
    taken_over(host)
    assert host.call("restore")["files"] == {str(path): "restored"}


def test_a_kill_before_the_end_was_told_among_the_events_forgets_nothing(host: Any) -> None:
    path = written(host)
    by_deadman(host)
    events = host.run_folder / "events.jsonl"
    lines = [line for line in events.read_text().splitlines() if json.loads(line)["event"] != "fired"]
    events.write_text("\n".join(lines) + "\n")
    path.write_bytes(NEW)
    assert refused(lambda: host.call("restore")).reason == "changed_by_other"


def test_a_decision_that_is_asked_for_again_is_told_among_the_events_once(host: Any) -> None:
    path = written(host)
    host.call("restore")
    host.disarm("reverted")
    events = host.run_folder / "events.jsonl"
    whole = events.read_text()
    lines = [line for line in whole.splitlines() if json.loads(line)["event"] != "disarmed"]
    events.write_text("\n".join(lines) + "\n")  # killed right after the decision
    for _ in range(2):
        assert host.disarm("reverted")["changed"] is False
    told = [event for event in host.events() if event["event"] == "disarmed"]
    assert [(event["outcome"], event["generation"]) for event in told] == [("reverted", 1)]
    path.write_bytes(NEW)
    assert refused(lambda: host.call("restore")).reason == "changed_by_other"
