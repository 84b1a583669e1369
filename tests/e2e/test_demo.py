"""The demo, really run: its story, its exit codes, and that nothing it started outlives it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import changectl

pytest.importorskip("xllamacpp", reason="the demo's server comes with the extra `demo`")
pytest.importorskip("gguf", reason="the demo's model writer comes with the extra `demo`")

CPUS = sorted(os.sched_getaffinity(0))
LIMIT = 600.0  # seconds; it takes about 100, and a disturbed measurement is repeated


def environment() -> dict[str, str]:
    source = str(Path(changectl.__file__).parents[1])  # absolute: the demo's children run in another folder
    return {**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"}


def start(folder: Path, cpus: int = len(CPUS)) -> subprocess.Popen[str]:
    limited = f"import os, runpy; os.sched_setaffinity(0, {CPUS[:cpus]}); "
    run = "runpy.run_module('changectl.demo', run_name='__main__', alter_sys=True)"
    return subprocess.Popen(
        [sys.executable, "-c", limited + run, "--dir", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), start_new_session=True,
    )  # fmt: skip


def running_below(folder: Path) -> list[str]:
    """Command lines of every process that has to do with the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place, words = (
                str((process / "cwd").readlink()),
                (process / "cmdline").read_bytes().decode(errors="replace"),
            )
        except OSError:
            continue
        if str(folder) in place or str(folder) in words:
            found.append(words.replace("\0", " "))
    return found


def asked(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "changectl.cli.main", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "a demo"
    assert running_below(tmp_path) == []


@pytest.mark.timeout(LIMIT + 60)
@pytest.mark.parametrize("cpus", sorted({1, len(CPUS)}))
def test_one_change_is_kept_and_one_taken_back_on_any_number_of_cores(folder: Path, cpus: int) -> None:
    process = start(folder, cpus)
    try:
        out, _ = process.communicate(timeout=LIMIT)
    finally:
        end(process)
    assert process.returncode == 0, out
    endings = [line for line in out.splitlines() if line.startswith(("kept: ", "reverted: "))]
    assert any(line.startswith("kept: ") and line.endswith("exit code 0)") for line in endings), out
    assert any(line.startswith("reverted: ") and line.endswith("exit code 4)") for line in endings), out
    story = [line for line in out.splitlines() if line.startswith("== ")]
    assert story == [
        "== A service and two plans ==", "== A change that is kept ==", "== A change that is taken back ==",
        "== The record ==", "== What to try next ==",
    ]  # fmt: skip
    assert running_below(folder) == []
    judged = [run for run in asked(folder, "history")["runs"] if run["exit_code"] != 5]
    assert [(run["outcome"], run["exit_code"]) for run in judged] == [("reverted", 4), ("kept", 0)]
    assert "--parallel 16 " in (folder / "service" / "chat.env").read_text()
    # A host of its own: no other demo is in its way.
    assert (folder / "state" / "host" / "witness.jsonl").exists()
    worse = first_token(asked(folder, "show", judged[0]["run"]))
    assert worse["after"] >= 3 * worse["before"]
    for run in judged:
        only_default_margins_and_declared_trades(asked(folder, "show", run["run"]))
        assert {one["same"] for one in asked(folder, "judge", run["run"])["verdicts"]} == {True}


def first_token(story: dict[str, Any]) -> dict[str, Any]:
    (row,) = [
        row for row in story["steps"][0]["rows"] if row["metric"] == "ttft_user_p50" and row["state"] != "not judged"
    ]
    return row


def only_default_margins_and_declared_trades(story: dict[str, Any]) -> None:
    (step,) = story["steps"]
    accepted = step["accept"] if isinstance(step["accept"], list) else [step["accept"]]
    factor = r"less than 1\.5 times(, or up to \d+ms more| lower)"
    defaults = factor + r"|less than 5 points more, or p at least 0\.01|expected .*"
    for row in step["rows"]:
        assert row["limit"] in accepted or re.fullmatch(defaults, row["limit"]), row
        assert row["limit"] not in accepted or row["metric"].startswith("tpot"), row


@pytest.mark.timeout(180)
def test_an_interrupted_demo_restores_first_and_then_stops_what_it_started(folder: Path) -> None:
    process = start(folder)
    try:
        wait_for_measuring(folder)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=90)
    finally:
        end(process)
    assert process.returncode == 130, out
    assert "What was started is stopped" in out
    assert running_below(folder) == []
    assert "--parallel 2 " in (folder / "service" / "chat.env").read_text()
    (run,) = asked(folder, "history")["runs"]
    assert run["outcome"] in {"reverted", "aborted", "refused"}
    assert run["exit_code"] == 130


def wait_for_measuring(folder: Path) -> None:
    """Until the new configuration is written and being measured."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            if "--parallel 16 " in (folder / "service" / "chat.env").read_text():
                time.sleep(5)
                return
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail("the demo never changed the settings file")


def end(process: subprocess.Popen[str]) -> None:
    """Let a demo that a failing test left behind stop what it started."""
    if process.poll() is None:
        process.terminate()
        process.communicate(timeout=60)


def test_a_folder_with_something_else_in_it_is_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("years")
    process = start(folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no demo made it" in out
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
