"""`changectl audit`: what people and programs are told, whom it asks, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits
from tests.unit.store.records import CUT, Record, build, unguarded

from changectl.cli._witnesses import ask_hosts
from changectl.core.errors import ContactLost, HostCallError
from changectl.core.ports import HostAddress, Json, Progress

NOBODY = "[all]\nfar ansible_host=127.0.0.1 ansible_port=1 ansible_user=nobody\n"  # nothing listens there


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """A record in the project that is the working directory."""
    (tmp_path / "changectl.toml").write_text('key_file = ".changectl/changectl.key"\ninventory = "hosts.ini"\n')
    (tmp_path / "hosts.ini").write_text(NOBODY)
    monkeypatch.chdir(tmp_path)
    return build(tmp_path / ".changectl")


def test_without_a_host_it_is_linked_and_complete_and_says_that_nobody_witnesses_it(record: Record, run: Run) -> None:
    ended = run("audit", "verify")

    assert (ended.code, ended.err) == (0, "")
    for line in ("linked: ", "complete: ", "not witnessed: no host was asked", f"run {CUT} goes on or was cut off"):
        assert line in ended.out
    assert "restart on gpu1 (event 36)" in ended.out


def test_heads_from_a_file_witness_it_and_the_document_is_such_a_file(record: Record, run: Run, tmp_path: Path) -> None:
    first = run("audit", "verify", "--witness", str(record.heads_file()), "--json")
    (tmp_path / "again.json").write_text(first.out)
    again = run("audit", "verify", "--witness", str(tmp_path / "again.json"))

    fits(first.json, "audit")
    assert first.json["exit_code"] == first.code == again.code == 0
    assert first.json["verdict"] == ["linked", "complete", "witnessed up to event 30"]
    assert (first.json["witnessed"]["host"], first.json["events"]) == ("gpu1", 36)
    assert "witnessed up to event 30: gpu1 was told it when run" in again.out
    assert "6 newer events rest on the chain alone" in again.out


def test_a_rewritten_journal_is_told_in_words_and_by_exit_code(record: Record, run: Run) -> None:
    with unguarded(record.path) as raw:
        raw.execute("DELETE FROM event WHERE sequence > 28")
    ended = run("audit", "verify", "--witness", str(record.heads_file()), "--json")
    for_people = run("audit", "verify", "--witness", str(record.heads_file()))

    fits(ended.json, "audit")
    assert ended.json["exit_code"] == ended.code == for_people.code == 3
    assert [(one["problem"], one["event"]) for one in ended.json["findings"]] == [("lines_gone", 30)]
    assert "lines_gone: host gpu1 was told event 30" in for_people.out


def test_guards_that_are_gone_are_found_although_other_commands_refuse_to_open_it(record: Record, run: Run) -> None:
    with unguarded(record.path, put_back=False):
        pass

    assert run("history").code == 3
    ended = run("audit", "verify", "--json")
    assert {one["problem"] for one in ended.json["findings"]} == {"guard_missing"}
    assert ended.json["verdict"][:2] == ["linked", "complete"]


def test_a_host_of_the_inventory_that_cannot_be_asked_is_a_finding(record: Record, run: Run) -> None:
    ended = run("audit", "verify", "--hosts", "--json")

    fits(ended.json, "audit")
    assert ended.code == 3
    assert list(ended.json["silent"]) == ["far"]
    assert [one["problem"] for one in ended.json["findings"]] == ["host_silent"]
    assert ended.json["verdict"][2] == "not witnessed"


def test_a_limit_that_leaves_no_host_asks_nobody_and_says_so(record: Record, run: Run) -> None:
    ended = run("audit", "verify", "--hosts", "--limit", "nobody-of-that-name")

    assert ended.code == 2
    assert "no host to ask" in ended.err


def test_where_no_record_is_there_is_nothing_to_verify_unless_a_host_knows_better(
    record: Record, run: Run, tmp_path: Path
) -> None:
    heads = record.heads_file().rename(tmp_path / "heads.json")
    for file in tmp_path.glob(".changectl/changectl.db*"):
        file.unlink()

    assert run("audit", "verify").code == 2
    assert not record.path.exists()
    ended = run("audit", "verify", "--witness", str(heads), "--json")
    assert (ended.code, ended.json["verdict"]) == (3, ["linked", "not complete", "not witnessed"])


@pytest.mark.parametrize("text", ["nonsense", "{}", "[" * 100_000])
def test_a_file_without_heads_is_not_usable(record: Record, run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "heads.json").write_text(text)

    ended = run("audit", "verify", "--witness", "heads.json", "--json")

    assert ended.code == 2
    fits(ended.json, "error")


@pytest.mark.parametrize("arguments", [[], ["verfy"], ["verifier", "--hosts"], ["verifier", "--witness", "x"]])
def test_what_makes_no_sense_is_a_mistake_of_usage(record: Record, run: Run, arguments: list[str]) -> None:
    assert run("audit", *arguments).code == 2


def test_the_printed_verifier_comes_to_the_same_verdict(record: Record, run: Run, tmp_path: Path) -> None:
    printed = run("audit", "verifier")
    (tmp_path / "verify.py").write_text(printed.out)
    command = [
        sys.executable,
        "-I",
        "-S",
        "verify.py",
        str(record.path),
        "--witness",
        str(record.heads_file()),
        "--json",
    ]

    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (printed.code, alone.returncode, alone.stderr) == (0, 0, "")
    ours = run("audit", "verify", "--witness", str(record.heads_file()), "--json").json
    theirs = json.loads(alone.stdout)
    assert (theirs["verdict"], theirs["events"]) == (ours["verdict"], ours["events"])
    assert theirs["open_runs"] == [one["run"] for one in ours["open_runs"]]


ON_A_HOST = """
mount -t tmpfs tmpfs /var/lib && install -d -m 700 /var/lib/changectl || exit 77
install -m 600 "$1" /var/lib/changectl/witness.jsonl
exec "$2" -m changectl.cli.main audit verify --hosts --json
"""


@pytest.mark.parametrize(("remembered", "code", "word"), [(5, 0, "witnessed up to event 30"), (0, 3, "not witnessed")])
def test_a_real_host_is_asked_for_what_it_remembers(
    record: Record, tmp_path: Path, remembered: int, code: int, word: str
) -> None:
    (tmp_path / "hosts.ini").write_text("[all]\ngpu1 ansible_connection=local\n")
    lines = [json.dumps(head) + "\n" for head in record.heads["gpu1"][:remembered]]
    (tmp_path / "witness.jsonl").write_text("".join(lines))
    start = ["unshare", "--mount", "sh", "-c", ON_A_HOST, "sh", str(tmp_path / "witness.jsonl"), sys.executable]
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("only root may give a process a /var/lib of its own")

    ended = subprocess.run(start, capture_output=True, text=True, check=False)

    assert ended.returncode == code, ended.stderr
    document = json.loads(ended.stdout)
    assert document["verdict"][2] == word
    assert [head["sequence"] for head in document["hosts"]["gpu1"]] == [4, 10, 17, 23, 30][:remembered]
    assert {one["problem"] for one in document["findings"]} == ({"not_witnessed"} if code else set())


@dataclass
class KnowingHost:
    """Fulfils core.ports.Door: answers one call, or raises."""

    answer: Any
    closed: bool = False
    asked: list[str] = field(default_factory=list)

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        self.asked.append(name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"heads": self.answer}

    def close(self) -> None:
        self.closed = True


@dataclass
class KnowingHosts:
    """Fulfils core.ports.Doors."""

    hosts: dict[str, KnowingHost]

    def open(self, host: HostAddress) -> KnowingHost:
        if host.name not in self.hosts:
            raise ContactLost(f"{host.name}: no route\nto host")
        return self.hosts[host.name]


def test_every_host_is_asked_once_and_one_that_fails_does_not_spoil_the_others() -> None:
    head = {"at": "2026-11-30T08:15:20Z", "run": "r.1", "what": "armed", "sequence": 4, "hash": "aa"}
    hosts = {
        "gpu1": KnowingHost([head]),
        "gpu2": KnowingHost([]),
        "old": KnowingHost(HostCallError("old: unknown call", reason="unknown_call")),
        "odd": KnowingHost("nonsense"),
    }

    found = ask_hosts([HostAddress(name) for name in (*hosts, "far")], KnowingHosts(hosts), 7)

    assert {name: [one.sequence for one in heads] for name, heads in found.heads.items()} == {"gpu1": [4], "gpu2": []}
    assert set(found.silent) == {"old", "odd", "far"}
    assert found.silent["far"] == "far: no route to host"
    assert found.asked_at == {"gpu1": 7, "gpu2": 7}
    assert all(host.closed and host.asked == ["witness"] for host in hosts.values())
