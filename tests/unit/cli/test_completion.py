"""A shell completes runs, services, words and plans: fast, from the record, and silently where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from tests.unit.core.history.history_samples import Tape

import changectl
from changectl.cli.main import command
from changectl.store import open_store
from changectl.store.store import Store

SOURCES = Path(changectl.__file__).parent.parent
PLAN = "version: 1\nservice: chat\nreason: a test\nsteps: []\n"


def offered(*arguments: str, incomplete: str = "") -> list[str]:
    shell = BashComplete(command, {}, "changectl", "_CHANGECTL_COMPLETE")
    return [item.value for item in shell.get_completions(list(arguments), incomplete)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tell(folder: Path, tape: Tape) -> Store:
    store = open_store(folder / ".changectl" / "changectl.db", folder / ".changectl" / "key")
    for event in tape.events:
        store.journal.append(event.run, event.kind, event.body, step=event.step)
    return store


@pytest.fixture
def told(folder: Path) -> Iterator[Store]:
    tape = Tape()
    tape.whole("20261130-aa")
    tape.whole("20261201-bb", service="search", hosts=["gpu2"], actor="bob@laptop")
    with tell(folder, tape) as store:
        yield store


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("arguments", "incomplete", "words"),
    [
        (["show"], "", ["20261201-bb", "20261130-aa"]),
        (["show"], "20261130", ["20261130-aa"]),
        (["diff"], "2026120", ["20261201-bb"]),
        (["revert"], "20261130", ["20261130-aa"]),
        (["status"], "", ["search", "chat"]),
        (["unlock"], "c", ["chat"]),
        (["history", "--service"], "s", ["search"]),
        (["history", "--host"], "", ["gpu2", "gpu1"]),
        (["history", "--actor"], "b", ["bob@laptop"]),
        (["history", "--change"], "", ["max-num-seqs"]),
        (["history", "--outcome"], "revert", ["reverted", "revert_unverified", "revert_failed"]),
        (["history", "--verdict"], "i", ["improved", "inconclusive", "invalid"]),
    ],
)
def test_what_the_record_knows_is_offered_the_newest_first(
    arguments: list[str], incomplete: str, words: list[str]
) -> None:
    assert offered(*arguments, incomplete=incomplete) == words


def test_a_record_at_rest_is_read_without_leaving_a_file_beside_it(folder: Path, told: Store) -> None:
    told.close()
    before = sorted(folder.rglob("*"))

    assert offered("show") == ["20261201-bb", "20261130-aa"]
    assert sorted(folder.rglob("*")) == before


@pytest.mark.usefixtures("told")
def test_the_project_file_says_where_the_record_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert offered("show") == []

    (folder / "changectl.toml").write_text('inventory = "inventory"\n')
    assert offered("show", incomplete="20261130") == ["20261130-aa"]
    (folder / "changectl.toml").write_text('database = "elsewhere.db"\n')
    assert offered("show") == []


@pytest.mark.parametrize("content", [None, b"", b"no database at all", b"[broken"])
def test_where_there_is_no_record_nothing_is_offered_nor_said(
    folder: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (folder / ".changectl").mkdir()
        (folder / ".changectl" / "changectl.db").write_bytes(content)
        (folder / "changectl.toml").write_bytes(content if content == b"[broken" else b"")
    before = sorted(folder.rglob("*"))

    assert offered("show") == []
    assert sorted(folder.rglob("*")) == before
    assert capsys.readouterr() == ("", "")


def test_what_a_shell_or_a_terminal_would_obey_is_not_offered(folder: Path) -> None:
    tape = Tape()
    for service in ("chat", "$(reboot)", "a b", "x\x1b[2J", "`id`"):
        tape.opened(f"r-{len(tape.events)}", service=service)
    with tell(folder, tape):
        assert offered("status") == ["chat"]


def test_plans_are_offered_and_no_other_yaml(folder: Path) -> None:
    (folder / "changeplans").mkdir()
    for name, text in (("0001-a.yml", PLAN), ("0002-b.yaml", PLAN), ("notes.yml", "just: notes\n")):
        (folder / "changeplans" / name).write_text(text)
    (folder / "inventory").mkdir()
    (folder / "inventory" / "hosts.yml").write_text("all: {}\n")

    plans = ["changeplans/0001-a.yml", "changeplans/0002-b.yaml"]
    assert offered("apply") == offered("plan") == offered("validate") == plans
    assert offered("validate", plans[0], incomplete="changeplans/0002") == [plans[1]]
    assert offered("plan", incomplete="./changeplans/0001") == ["./changeplans/0001-a.yml"]
    assert offered("plan", incomplete=f"{folder}/changeplans/0001") == [f"{folder}/changeplans/0001-a.yml"]


def test_where_no_plan_begins_so_the_shell_looks_for_files(folder: Path) -> None:
    shell = BashComplete(command, {}, "changectl", "_CHANGECTL_COMPLETE")
    (item,) = shell.get_completions(["plan"], "elsewhere/")
    assert (item.type, item.value) == ("file", "elsewhere/")


@pytest.mark.usefixtures("told")
def test_a_completion_loads_nothing_heavy() -> None:
    script = (
        "import atexit, sys; from changectl.cli.main import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main([])"
    )
    environment = {"PYTHONPATH": str(SOURCES), "PATH": os.environ["PATH"], "COMP_WORDS": "changectl show ",
                   "COMP_CWORD": "2", "_CHANGECTL_COMPLETE": "bash_complete"}  # fmt: skip

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["plain,20261201-bb", "plain,20261130-aa"]
    assert {"pydantic", "sqlalchemy", "sqlmodel", "rich", "ansible"}.isdisjoint(done.stderr.split())
