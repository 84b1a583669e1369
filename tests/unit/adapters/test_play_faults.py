"""Plays through the real ansible-runner while something goes wrong: a killed worker, Ctrl-C, lost events, silence."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.play_desk import HERE, Desk, read

from changectl.core.errors import ChangectlError, ContactLost

# Two tasks: the first one leaves a mark and takes its time, the second one leaves another.
TWO_TASKS = """\
- hosts: "{{ changectl_host_name }}"
  gather_facts: false
  tasks:
    - ansible.builtin.command: sh -c 'touch "$0/first"; exec sleep "$1"' {{ place }} {{ seconds }}
    - ansible.builtin.command: touch {{ place }}/second
    - ansible.builtin.debug: var=answer
"""
# The folder into which events are written is gone before the last of them: the play itself goes well.
EVENTS_LOST = """\
- hosts: "{{ changectl_host_name }}"
  gather_facts: false
  tasks:
    - ansible.builtin.debug: var=answer
    - ansible.builtin.shell: cd "$AWX_ISOLATED_DATA_DIR" && rm -rf job_events && touch job_events {{ place }}/second
"""
TELLS = """\
- hosts: "{{ changectl_host_name }}"
  gather_facts: false
  tasks:
    - ansible.builtin.debug: var=answer
"""
AT_ONCE = 20


@pytest.fixture
def desk() -> Iterator[Desk]:
    folder = Path(tempfile.mkdtemp(prefix="desk-", dir="/var/tmp"))
    made = Desk(folder)
    yield made
    for pid in [*made.processes(), *_sleepers(made)]:
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def _sleepers(desk: Desk) -> list[int]:
    """What the first task still does, a child of the play or left behind by it."""
    home = f"HOME={desk.folder}".encode()
    found = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if read(path).startswith(b"sleep\0")]
    return [int(folder.name) for folder in found if home in read(folder / "environ").split(b"\0")]


def _given(desk: Desk, seconds: float = 60, **more: Any) -> dict[str, Any]:
    return {"place": str(desk.folder), "seconds": str(seconds), "answer": {"seen": "all"}, **more}


def _when_the_first_task_runs(desk: Desk, act: Callable[[], None]) -> threading.Thread:
    def wait_and_act() -> None:
        deadline = time.monotonic() + 30
        while not _sleepers(desk) and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def _main_and_workers(desk: Desk) -> tuple[list[int], list[int]]:
    """Ansible's own process, and the workers that it forked."""
    ours = desk.processes()
    parents = {pid: int(read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[1]) for pid in ours}
    mains = [pid for pid in ours if parents[pid] == os.getpid()]
    return mains, [pid for pid in ours if parents[pid] in mains]


def test_a_killed_worker_ends_the_play_in_time_and_never_as_a_success(desk: Desk) -> None:
    killed: list[int] = []

    def kill() -> None:
        killed.extend(_main_and_workers(desk)[1])
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    killer = _when_the_first_task_runs(desk, kill)
    begun = time.monotonic()
    with pytest.raises(ChangectlError):
        desk.own("two", TWO_TASKS).run("two", HERE, _given(desk), timeout=15)
    killer.join()

    assert killed
    assert time.monotonic() - begun < 15 + 15
    assert not (desk.folder / "second").exists()
    assert desk.processes() == []


def test_after_ctrl_c_reached_ansible_no_further_task_begins(desk: Desk) -> None:
    hit: list[int] = []

    def interrupt() -> None:
        hit.extend(_main_and_workers(desk)[0])
        for pid in hit:
            os.kill(pid, signal.SIGINT)

    interrupter = _when_the_first_task_runs(desk, interrupt)
    with pytest.raises(ChangectlError):
        desk.own("two", TWO_TASKS).run("two", HERE, _given(desk), timeout=15)
    interrupter.join()
    time.sleep(1)

    assert hit
    assert (desk.folder / "first").exists()
    assert not (desk.folder / "second").exists()
    assert desk.processes() == []


def test_a_play_that_is_asked_to_end_begins_no_further_task(desk: Desk) -> None:
    plays = replace(desk.own("two", TWO_TASKS), cancel=lambda: (desk.folder / "first").exists())
    with pytest.raises(ContactLost):
        plays.run("two", HERE, _given(desk), timeout=30)

    assert not (desk.folder / "second").exists()
    assert desk.processes() == []


def test_a_play_whose_last_events_got_lost_is_no_success_although_it_went_well(desk: Desk) -> None:
    with pytest.raises(ContactLost, match="without its final report"):
        desk.own("lost", EVENTS_LOST).run("lost", HERE, _given(desk), timeout=30)

    assert (desk.folder / "second").exists()


def test_a_play_that_says_nothing_for_longer_than_anybody_reads_is_waited_for(desk: Desk) -> None:
    begun = time.monotonic()
    result = desk.own("two", TWO_TASKS).run("two", HERE, _given(desk, 7), timeout=30)

    assert time.monotonic() - begun > 7  # the runner itself reads for at most 5 s at a time
    assert result.answers == ({"seen": "all"},)
    assert (desk.folder / "second").exists()


@pytest.fixture
def temporary(desk: Desk) -> Iterator[Path]:
    """A place for temporary files that nobody else uses."""
    folder, before = desk.folder / "tmp", tempfile.tempdir
    folder.mkdir()
    tempfile.tempdir = str(folder)
    yield folder
    tempfile.tempdir = before


def test_twenty_plays_at_once_keep_apart(desk: Desk, temporary: Path) -> None:
    plays = desk.own("tells", TELLS)
    seen: set[str] = set()

    def run(number: int) -> Any:
        answers = plays.run("tells", HERE, _given(desk, answer={"number": number}), timeout=200).answers
        seen.update(folder.name for folder in temporary.iterdir())
        return answers

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(run, range(AT_ONCE)))

    assert answers == [({"number": number},) for number in range(AT_ONCE)]
    assert desk.processes() == []
    assert len(seen) > 1  # they were at work at the same time, each in a folder of its own
    assert list(temporary.iterdir()) == []
