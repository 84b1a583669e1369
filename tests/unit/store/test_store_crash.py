from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from changectl.store import open_store

APPEND = """
import sys
from pathlib import Path
from changectl.store import open_store
store = open_store(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    store.journal.append(sys.argv[2], "note", {"number": number, "log": "x" * 500})
    print(number, flush=True)
"""


def start(database: Path, run: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", APPEND, str(database), run, str(count)], stdout=subprocess.PIPE)


@pytest.mark.parametrize("milliseconds", [0, 7, 31])
def test_what_was_acknowledged_before_a_kill_is_there_and_the_chain_holds(database: Path, milliseconds: int) -> None:
    process = start(database, "r1", 1_000_000)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(milliseconds / 1000)
    process.send_signal(signal.SIGKILL)
    acknowledged = [0, *map(int, process.stdout.read().rpartition(b"\n")[0].split())][-1]
    process.wait()

    with open_store(database) as store:
        numbers = [event.body["number"] for event in store.journal.events("r1")]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) in (acknowledged + 1, acknowledged + 2)  # the last may be on disk before anybody was told
        assert store.verify_chain() == []
        store.journal.append("r2", "goes on", {})
        assert store.verify_chain() == []


def test_processes_that_create_and_append_at_the_same_time_share_one_chain(database: Path) -> None:
    processes = [start(database, f"r{index}", 60) for index in range(3)]
    assert [process.communicate()[0].count(b"\n") for process in processes] == [60, 60, 60]
    assert [process.returncode for process in processes] == [0, 0, 0]

    with open_store(database) as store:
        assert store.journal.head()[0] == 180
        assert store.verify_chain() == []
        for index in range(3):
            assert [event.body["number"] for event in store.journal.events(f"r{index}")] == list(range(60))


def test_processes_that_make_the_key_at_the_same_time_agree_on_one(database: Path) -> None:
    open_store(database).close()
    code = (
        "import sys; from pathlib import Path; from changectl.store import open_store; "
        "s = open_store(Path(sys.argv[1])); print(s.records.put_snapshot('r', 'h', sys.argv[2].encode()))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(database), f"saved {index}"], stdout=subprocess.PIPE, text=True
        )
        for index in range(3)
    ]
    digests = [process.communicate()[0].strip() for process in processes]
    with open_store(database) as store:
        assert [store.records.get_snapshot(digest) for digest in digests] == [b"saved 0", b"saved 1", b"saved 2"]
    assert not list(database.parent.glob(".*"))
