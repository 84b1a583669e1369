from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run


def test_what_is_written_passes_validation(project: Path, run: Run) -> None:
    ended = run("validate", "changeplans/0001-more-sequences.yml")

    assert (ended.code, ended.err) == (0, "")


def test_it_says_what_comes_next(tmp_path: Path, run: Run) -> None:
    ended = run("init", tmp_path / "new")

    assert ended.code == 0
    assert "changectl validate changeplans/0001-more-sequences.yml" in ended.out
    assert (tmp_path / "new/inventory/services/chat.yml").is_file()


def test_the_key_does_not_go_into_git_with_the_plans(project: Path, run: Run) -> None:
    (project / ".changectl").mkdir()
    (project / ".changectl/key").write_text("secret")
    for arguments in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)
    added = subprocess.run(
        ["git", "ls-files"], cwd=project, check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert "changectl.toml" in added
    assert not [name for name in added if name.startswith(".changectl/")]


def test_the_steps_that_come_next_can_be_copied_and_begin_by_looking_at_the_hosts(tmp_path: Path, run: Run) -> None:
    lines = [line.strip() for line in run("init", tmp_path / "new").out.splitlines()]
    commands = [line.split()[1] for line in lines if line.startswith("changectl ")]

    assert commands == ["doctor", "validate", "plan", "apply"]


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path, run: Run) -> None:
    mine = tmp_path / "inventory/hosts.yml"
    mine.parent.mkdir()
    mine.write_text("mine")

    ended = run("init", tmp_path)

    assert ended.code == 2
    assert "inventory/hosts.yml: this file exists already" in ended.err
    assert mine.read_text() == "mine"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]


def test_json_lists_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)

    ended = run("init", "--json")

    assert ended.json["exit_code"] == 0
    assert all((tmp_path / name).is_file() for name in ended.json["written"])
