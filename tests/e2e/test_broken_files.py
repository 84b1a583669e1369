"""Files that are not usable, through the installed command: exit code 2, place and hint; nothing is touched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CHANGECTL = Path(sys.executable).parent / "changectl"
PLAN = "changeplans/0001-more-sequences.yml"
SERVICE = "inventory/services/chat.yml"
WORKLOAD = "inventory/workloads/chat.jsonl"
PROJECT = "changectl.toml"

# Loaded by the interpreter of the command: writes down every process and connection that it starts.
WATCH = """
import os, sys
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork", "socket.connect"):
        descriptor = os.open(os.environ["WATCHED"], os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, f"{event} {arguments}\\n".encode())
        os.close(descriptor)
    if event == "open" and os.environ.get("FAIL_AT") and str(arguments[0]).endswith(os.environ["FAIL_AT"]):
        raise RuntimeError("the disk spoke in tongues\\nand at length")
sys.addaudithook(watch)
"""


@dataclass(frozen=True)
class Broken:
    """One mistake: what is replaced in which file, and what is said about it."""

    name: str
    file: str
    old: str  # "": the whole file
    new: str
    line: int  # where the message points
    words: str  # a regular expression that the message holds
    hint: str  # the same for what to write instead


KINDS = [
    Broken("an unknown kind of change", PLAN, "parameter:", "paramter:", 6, "unknown kind of change", "`parameter`"),
    Broken("an effort that does not exist", PLAN, "quick ", "slow ", 4, "effort", "effort: quick"),
    Broken("no reason", PLAN, "reason: requests wait while the GPU is idle\n", "", 1, "reason", "reason"),
    Broken("an unknown key", PLAN, "effort: quick", "efort: quick", 4, "efort", "`effort`"),
    Broken("a key twice", PLAN, "service: chat\n", "service: chat\nservice: chat\n", 3, "a second time", "."),
    Broken("no YAML", PLAN, "{rps_ok: +10%}", "{rps_ok: +10%", 9, "not readable as YAML", "."),
    Broken("a list instead of a plan", PLAN, "", "- a\n- b\n", 1, ".", "."),
    Broken("an empty plan", PLAN, "", "", 1, ".", "."),
    Broken("a newer version", PLAN, "version: 1", "version: 2", 1, "version", "1"),
    Broken("two changes in one step", PLAN, "{parameter: {name: max-num-seqs, to: 128}}",
           "{parameter: {name: a, to: 1}, environment: {name: B, to: 2}}", 6, ".", "."),
    Broken("an unknown metric", PLAN, "tpot_p95: <=", "tpott_p95: <=", 9, "tpott_p95", r"tpot\["),
    Broken("a limit that is none", PLAN, "<= 100ms", "fast", 9, ".", "<="),
    Broken("a change without its new value", PLAN, ", to: 128", "", 6, "`?to`?", "."),
    Broken("no steps", PLAN, "", "version: 1\nservice: chat\nreason: x\neffort: quick\nsteps: []\n", 5, "step", "."),
    Broken("a service that does not exist", PLAN, "service: chat", "service: chatt", 2, "chatt", "chat"),
    Broken("an unknown engine", SERVICE, "engine: vllm ", "engine: vlm ", 7, "vlm", "vllm"),
    Broken("an unknown manager", SERVICE, "systemd:", "systemdd:", 8, "systemdd", "systemd"),
    Broken("an unknown format", SERVICE, "format: flags", "format: flag", 10, "flag", "flags"),
    Broken("a template that cannot be read", SERVICE, "{{ ansible_host }}", "{{ ansible_host", 6, "template", "."),
    Broken("a level without a load", SERVICE, "low: 1 stream", "low: some", 16, "some", "stream"),
    Broken("too few requests to judge by", SERVICE, "requests: 60 ", "requests: 19 ", 17, "never be judged",
           "requests: 60"),
    Broken("a plan that measures too little", PLAN, "steps:", "conditions: {requests: 10}\nsteps:", 5,
           "20 good answers", "at least 20"),
    Broken("a workload that does not exist", SERVICE, "chat.jsonl", "chatt.jsonl", 15, "chatt.jsonl", "."),
    Broken("a request that is no JSON", WORKLOAD, '{"id": "short-1"', '{"id": short-1', 1, ".", "."),
    Broken("an unknown key of the project file", PROJECT, "database =", "databse =", 3, "databse", "database"),
]  # fmt: skip


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a fresh project."""
    folder = tmp_path_factory.mktemp("example")
    subprocess.run([CHANGECTL, "init", str(folder)], check=True, capture_output=True)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass
class Desk:
    """A project with one mistake in it."""

    folder: Path
    watched: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [CHANGECTL, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def desk(tmp_path: Path, example: dict[str, bytes]) -> Desk:
    for name, data in example.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_bytes(data)
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    (tmp_path / "watched").write_text("")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "watch"), os.environ.get("PYTHONPATH", "")]),
        "WATCHED": str(tmp_path / "watched"),
    }
    return Desk(tmp_path / "project", tmp_path / "watched", environment)


def break_it(folder: Path, broken: Broken) -> None:
    file = folder / broken.file
    text = file.read_text()
    assert not broken.old or text.count(broken.old) == 1
    file.write_text(text.replace(broken.old, broken.new) if broken.old else broken.new)


@pytest.mark.parametrize("broken", KINDS, ids=lambda broken: broken.name.replace(" ", "-"))
def test_a_file_that_is_not_usable_is_named_with_its_place_and_touches_nothing(desk: Desk, broken: Broken) -> None:
    break_it(desk.folder, broken)

    done = desk.run("apply", PLAN)

    assert (done.returncode, done.stdout) == (2, "")
    place = rf"^{re.escape(broken.file)}:{broken.line}(:\d+)?: .*{broken.words}.*\n  .*{broken.hint}"
    assert re.search(place, done.stderr, re.MULTILINE), done.stderr
    assert desk.watched.read_text() == ""
    assert not (desk.folder / ".changectl").exists()


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_other_commands_say_the_same_about_it(desk: Desk, command: str) -> None:
    break_it(desk.folder, KINDS[0])

    done = desk.run(command, PLAN)

    assert done.returncode == 2
    assert done.stderr == desk.run("apply", PLAN).stderr
    assert desk.watched.read_text() == ""
    assert not (desk.folder / ".changectl").exists()


def test_the_watch_sees_what_a_usable_plan_starts(desk: Desk) -> None:
    assert desk.run("validate", PLAN).returncode == 0
    assert "ansible-inventory" in desk.watched.read_text()


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_a_record_that_cannot_be_made_is_exit_code_1_and_one_sentence(desk: Desk, command: str) -> None:
    (desk.folder / ".changectl").write_text("")  # a file where a folder has to be

    done = desk.run(command, PLAN)

    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot create" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["history", "status"])
def test_a_damaged_record_is_said_in_one_sentence_and_left_alone(desk: Desk, command: str) -> None:
    (desk.folder / ".changectl").mkdir(mode=0o700)
    database = desk.folder / ".changectl" / "changectl.db"
    database.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)

    done = desk.run(command)

    assert done.returncode in (1, 3)
    assert "changectl.db" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert database.read_bytes() == b"SQLite format 3\0" + b"\xff" * 4096


def test_what_nobody_expected_is_exit_code_1_one_sentence_and_a_traceback_when_asked_for(desk: Desk) -> None:
    desk.environment["FAIL_AT"] = "services/chat.yml"

    short, long = desk.run("apply", PLAN), desk.run("apply", "--debug", PLAN)
    document = json.loads(desk.run("apply", "--json", PLAN).stdout)

    assert (short.returncode, short.stdout, long.returncode) == (1, "", 1)
    assert short.stderr.splitlines() == [
        "unexpected error: RuntimeError: the disk spoke in tongues",
        "Run the same command with --debug for the traceback.",
    ]
    assert "Traceback (most recent call last)" in long.stderr
    assert (document["exit_code"], document["error"]["reason"]) == (1, "unexpected_error")
    assert not (desk.folder / ".changectl").exists()
