from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits

LOG = "\n".join(
    [
        *(json.dumps({"request_body": {"messages": [{"role": "user", "content": "word " * n}]}}) for n in range(1, 51)),
        "GET /health 200",
        json.dumps({"prompt": "use password=hunter2hunter2", "max_tokens": 4}),
    ]
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sample_goes_to_stdout_and_what_is_told_does_not(here: Path, run: Run) -> None:
    ended = run("workload", "sample", "--requests", "4")

    assert ended.code == 0
    assert [json.loads(line)["id"] for line in ended.out.splitlines()] == ["short-1", "long-2", "short-3", "talk-4"]
    assert "1 conversation among them" in ended.err


@pytest.mark.parametrize("kind", ["chat", "completions", "embeddings", "kserve"])
def test_a_sample_of_every_kind_can_be_shown(here: Path, run: Run, kind: str) -> None:
    assert run("workload", "sample", "--kind", kind, "--to", "new.jsonl").code == 0

    shown = run("workload", "show", "new.jsonl", "--json")

    assert (shown.code, shown.json["lines"]) == (0, 32)
    fits(shown.json, "workload")
    assert bool(shown.json["lengths"]) is (kind != "kserve")


def test_nothing_is_overwritten(here: Path, run: Run) -> None:
    (here / "mine.jsonl").write_text("mine")

    ended = run("workload", "sample", "--to", "mine.jsonl")

    assert ended.code == 2
    assert "mine.jsonl: this file exists already" in ended.err
    assert (here / "mine.jsonl").read_text() == "mine"


def test_a_log_in_place_of_a_workload_is_one_problem_and_the_command_that_draws_from_it(here: Path, run: Run) -> None:
    (here / "access.log").write_text(LOG)

    ended = run("workload", "show", "access.log")

    assert ended.code == 2
    assert "access.log: this is a log or a data set, and not a workload" in ended.err
    assert "changectl workload from access.log --to NEW.jsonl" in ended.err
    assert len(ended.err.splitlines()) <= 3


def test_the_mistakes_of_a_workload_are_told_one_by_one(here: Path, run: Run) -> None:
    (here / "mine.jsonl").write_text('{"id": "a", "prompt": "Why?", "max_token": 4}\n')

    assert "unknown key `max_token`" in run("workload", "show", "mine.jsonl").err


def test_a_log_gives_a_workload_and_it_is_said_what_was_taken_and_left_out(here: Path, run: Run) -> None:
    (here / "access.log").write_text(LOG)

    ended = run("workload", "from", "access.log", "--requests", "10", "--seed", "3", "--to", "own.jsonl")

    assert ended.code == 0
    assert "taken: 10 of 50 requests" in ended.out
    assert "by seed 3" in ended.out
    assert "left out: 1, no JSON object (line or place 51)" in ended.out
    assert "left out: 1, what looks like a secret (line or place 52)" in ended.out
    assert "max_tokens of 10 requests: assumed" in ended.out
    assert "hunter2" not in (here / "own.jsonl").read_text() + ended.out + ended.err


def test_one_row_that_no_measurement_takes_is_left_out_and_the_others_are_drawn(here: Path, run: Run) -> None:
    talk = {"conversations": [{"role": "user", "content": text} for text in ("Hello", "")]}
    (here / "data.jsonl").write_text("\n".join(json.dumps(row) for row in (talk, {"prompt": "Hi", "max_tokens": 3})))

    ended = run("workload", "from", "data.jsonl", "--to", "own.jsonl")

    assert ended.code == 0
    assert "taken: all 1 request that were found" in ended.out
    assert "left out: 1, `turns` has to be a list of two texts or more, each of the user (line or place 1)" in ended.out


def test_what_users_wrote_is_for_the_one_who_drew_it_and_a_sample_for_all(here: Path, run: Run) -> None:
    (here / "access.log").write_text(LOG)
    before = os.umask(0o022)
    try:
        drawn = run("workload", "from", "access.log", "--to", "own.jsonl")
        run("workload", "sample", "--to", "sample.jsonl")
    finally:
        os.umask(before)

    assert [stat.S_IMODE((here / name).stat().st_mode) for name in ("own.jsonl", "sample.jsonl")] == [0o600, 0o644]
    assert "texts of users" in drawn.out
    assert "only you can read the new file" in drawn.out


def test_what_users_wrote_does_not_steer_the_terminal(here: Path, run: Run) -> None:
    (here / "log").write_text(json.dumps({"prompt": "a\u202eb\x1b[2J", "max_tokens": 3}))

    ended = run("workload", "from", "log")

    assert ended.out.isascii()
    assert json.loads(ended.out)["prompt"] == "a\u202eb\x1b[2J"


def test_the_same_seed_takes_the_same_requests(here: Path, run: Run) -> None:
    (here / "access.log").write_text(LOG)

    first, again, other = (run("workload", "from", "access.log", "--requests", "10", "--seed", seed) for seed in "337")

    assert first.out == again.out != other.out


def test_json_says_the_same_in_one_document(here: Path, run: Run) -> None:
    (here / "access.log").write_text(LOG)

    ended = run("workload", "from", "access.log", "--json", "--to", "own.jsonl")

    assert (ended.json["found"], ended.json["lines"], ended.json["requests"]) == (50, 50, 50)
    assert ended.json["left_out"] == {"no JSON object": [51], "what looks like a secret": [52]}
    assert ended.json["max_tokens_from"] == {"assumed": 50}
    fits(ended.json, "workload")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("from",), "needs a file"),
        (("show",), "needs a file"),
        (("sample", "access.log"), "reads no file"),
        (("sample", "--json"), "add --to FILE"),
        (("sample", "--requests", "2001"), "at most 2000 lines"),
        (("from", "nosuch.log"), "there is no such file"),
        (("from", "access.log", "--kind", "kserve"), "no request of kind kserve was found in it"),
        (("show", "access.log"), "access.log:"),
    ],
)
def test_what_cannot_be_done_is_named(here: Path, run: Run, words: tuple[str, ...], said: str) -> None:
    (here / "access.log").write_text(LOG)

    ended = run("workload", *words)

    assert ended.code == 2
    assert said in ended.err + ended.out
