"""The stand-alone verifier: it stands alone, never disagrees with the program, and is not confused by writers."""

from __future__ import annotations

import ast
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.imports import SOURCE, imports, is_standard
from tests.unit.store.auditors import agreed, by_program, by_verifier
from tests.unit.store.records import KEPT, Record, close_ranks, unguarded

from changectl.core.errors import Refused
from changectl.store import schema, verifier

FILE = SOURCE / "changectl/store/verifier.py"
OLDEST = (3, 8)

FIELDS = st.sampled_from(["run", "step", "kind", "at", "body", "prev", "hash", "sequence"])
VALUES = st.one_of(
    st.integers(-1, 40), st.text(max_size=5), st.binary(max_size=5), st.sampled_from([KEPT, "restart.intent"])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=FIELDS, value=VALUES, at=st.integers(1, 36), rehash=st.booleans(), gone=st.booleans())
def test_the_two_never_disagree_and_no_tampering_passes_both_chain_and_witness(
    whole: Record, tmp_path_factory: pytest.TempPathFactory, field: str, value: Any, at: int, rehash: bool, gone: bool
) -> None:
    record = whole.copy(tmp_path_factory.mktemp("tampered") / "state")
    with unguarded(record.path) as raw:
        before = raw.execute("SELECT * FROM event").fetchall()
        try:
            if gone:
                raw.execute("DELETE FROM event WHERE sequence = ?", (at,))
            else:
                raw.execute(f"UPDATE event SET {field} = ? WHERE sequence = ?", (value, at))
            if rehash:
                close_ranks(raw)
        except (sqlite3.IntegrityError, AttributeError, TypeError):
            return  # the database itself refuses this one, or it can be hashed no more
        changed = raw.execute("SELECT * FROM event").fetchall() != before

    _, found = agreed(record)

    unseen = at > record.heads["gpu1"][-1]["sequence"] and (rehash or gone)
    assert bool(found) == changed or unseen


def test_it_needs_the_standard_library_alone_and_an_old_python_reads_it() -> None:
    named = [found.imported for found in imports(SOURCE, "changectl") if found.importer == "changectl.store.verifier"]

    assert len(named) > 5
    assert [name for name in named if not is_standard(name)] == []
    ast.parse(FILE.read_text(), feature_version=OLDEST)


def test_it_knows_the_version_and_the_guards_of_this_program() -> None:
    assert verifier.NEWEST == schema.VERSION
    assert set(verifier.GUARDS) == set(schema.TRIGGERS)


def started(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A copy of the file, by a Python that knows nothing of changectl."""
    copy = Path(shutil.copy(FILE, folder / "verify.py"))
    oldest = shutil.which("python3.8") or sys.executable
    works = subprocess.run([oldest, "-c", ""], check=False, capture_output=True).returncode == 0
    python = oldest if works else sys.executable
    return subprocess.run([python, "-I", "-S", str(copy), *arguments], capture_output=True, text=True, check=False)


def test_a_copy_of_it_tells_the_verdict_by_words_and_exit_status(record: Record, tmp_path: Path) -> None:
    newest = record.heads["gpu1"][-1]["sequence"]
    sound = started(tmp_path, str(record.path), "--witness", str(record.heads_file()))
    with unguarded(record.path) as raw:
        raw.execute("UPDATE event SET kind = ? WHERE sequence = 9", ("\x1b[31m\u202e",))
    broken = started(tmp_path, str(record.path), "--json")
    for_people = started(tmp_path, str(record.path))

    assert (sound.returncode, sound.stderr) == (0, "")
    assert f"linked, complete, witnessed up to event {newest}" in sound.stdout
    assert broken.returncode == for_people.returncode == 3
    assert {one["problem"] for one in json.loads(broken.stdout)["findings"]} >= {"changed_event"}
    assert "changed_event: event 9" in for_people.stdout
    assert for_people.stdout.isascii()
    assert "\x1b" not in for_people.stdout


def test_it_finds_evidence_elsewhere_when_told_where(record: Record, tmp_path: Path) -> None:
    for name in ("blobs", "snapshots"):
        (record.path.parent / name).rename(tmp_path / name)
    folders = ("--blobs", str(tmp_path / "blobs"), "--snapshots", str(tmp_path / "snapshots"))

    assert started(tmp_path, str(record.path)).returncode == 3
    assert started(tmp_path, str(record.path), *folders).returncode == 0


@pytest.mark.parametrize(
    "heads", ["[]", "{}", "nonsense", '{"hosts": {"a": [{"run": "r", "sequence": "1", "hash": ""}]}}']
)
def test_what_is_no_record_or_no_heads_is_not_usable(record: Record, tmp_path: Path, heads: str) -> None:
    file = tmp_path / "given"
    file.write_text(heads)

    for arguments in ([str(record.path), "--witness", str(file)], [str(file)], [str(tmp_path / "nowhere")], []):
        ended = started(tmp_path, *arguments)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr


def test_a_newer_database_is_read_by_neither(record: Record) -> None:
    raw = sqlite3.connect(record.path, isolation_level=None)
    raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    raw.close()

    with pytest.raises(Refused, match="newer changectl"):
        by_program(record)
    with pytest.raises(verifier.Unusable, match="newer changectl"):
        by_verifier(record)


def test_a_record_in_which_nothing_was_written_is_a_record_of_nothing(record: Record) -> None:
    record.path.write_bytes(b"")
    record.heads.clear()

    assert agreed(record) == (["linked", "complete", "not witnessed"], set())


APPEND = """
import sys
from pathlib import Path
from changectl.store import open_store
from tests.unit.store.records import a_run
with open_store(Path(sys.argv[1])) as store:
    for number in range(1_000_000):
        a_run(store, f"20261201-{number:06}-chat-aaaa", "kept", [])
        print(number, flush=True)
"""


@contextmanager
def appending(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", APPEND, str(path)], stdout=subprocess.PIPE, cwd=SOURCE.parent)
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def test_while_another_process_appends_nothing_is_found(record: Record) -> None:
    with appending(record.path) as process:
        seen = []
        for _ in range(12):
            one, other = by_program(record), by_verifier(record)
            assert one == other
            assert one[1] == set()
            seen.append(verifier.verify(str(record.path))["events"])
        assert process.poll() is None

    assert seen == sorted(seen)
    assert seen[-1] > seen[0]
    assert agreed(record)[1] == set()  # nor after the writer was killed in the middle
