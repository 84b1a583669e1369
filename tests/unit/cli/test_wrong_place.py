"""A wrong folder, inventory or plan is one clear error that says what to do, never an empty answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run

PLAN = "changeplans/0001-more-sequences.yml"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nowhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [["history"], ["status"], ["status", "chat"], ["show", "r1"], ["diff", "r1"], ["unlock", "chat", "--reason", "x"]],
)
def test_outside_of_a_project_there_is_no_empty_record(nowhere: Path, run: Run, arguments: list[str]) -> None:
    ended = run(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert f"there is no project here: no changectl.toml in {nowhere} or above it" in ended.err
    assert "changectl init DIR" in ended.err
    assert list(nowhere.iterdir()) == []
    assert run(*arguments, "--json").json["error"]["reason"] == "bad_input"


@pytest.mark.parametrize("arguments", [["status"], ["apply", "plan.yml"], ["init"]])
def test_in_a_folder_that_was_deleted_it_says_where_to_go(nowhere: Path, run: Run, arguments: list[str]) -> None:
    nowhere.rmdir()
    ended = run(*arguments)

    assert ended.code == 2
    assert "the working directory cannot be used any more" in ended.err
    assert "change to the project's folder" in ended.err


@pytest.mark.parametrize("arguments", [["--help"], ["apply", "--help"], ["--version"]])
def test_in_a_folder_that_was_deleted_help_is_given_all_the_same(nowhere: Path, run: Run, arguments: list[str]) -> None:
    nowhere.rmdir()

    assert (run(*arguments).code, run(*arguments).err) == (0, "")


def test_in_a_folder_that_was_deleted_a_wrong_command_is_a_wrong_command(nowhere: Path, run: Run) -> None:
    nowhere.rmdir()

    assert "No such command" in run("nonsense").err


@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_outside_of_a_project_a_plan_has_no_inventory(nowhere: Path, run: Run, command: str) -> None:
    (nowhere / "plan.yml").write_text("version: 1\n")
    ended = run(command, "plan.yml")

    assert ended.code == 2
    assert len(ended.err.splitlines()) == 3
    assert ended.err.splitlines()[-1].strip() == "changectl init DIR"
    assert "no changectl.toml" in ended.err
    assert "-i PATH" in ended.err
    assert [one.name for one in nowhere.iterdir()] == ["plan.yml"]


def test_outside_of_a_project_a_revert_begins_no_record(nowhere: Path, run: Run) -> None:
    ended = run("revert", "20261130-aa")

    assert ended.code == 2
    assert "there is no project here" in ended.err
    assert list(nowhere.iterdir()) == []


@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_an_inventory_that_is_not_there_is_the_one_mistake(project: Path, run: Run, command: str) -> None:
    ended = run(command, "-i", "no-such-folder", PLAN)

    assert ended.code == 2
    assert ended.err.splitlines()[0] == "no-such-folder: there is no such inventory"
    assert len(ended.err.splitlines()) == 2
    assert not (project / ".changectl").exists()


def test_an_inventory_that_the_project_file_names_wrongly_is_named_with_that_file(project: Path, run: Run) -> None:
    (project / "changectl.toml").write_text('inventory = "inventories/hosts.yml"\n')
    ended = run("validate", PLAN)

    assert ended.code == 2
    assert ended.err.splitlines()[0] == "inventories/hosts.yml: there is no such inventory"
    assert "changectl.toml" in ended.err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["validate", "plan", "apply"])
def test_a_folder_is_not_a_plan(run: Run, command: str) -> None:
    ended = run(command, "changeplans")

    assert ended.code == 2
    assert ended.err.splitlines() == [
        "changeplans: this is a folder, and not a plan",
        "  name the plans in it: changeplans/*.yml",
    ]


@pytest.mark.usefixtures("project")
def test_a_project_without_a_record_says_that_nothing_is_recorded_yet(run: Run) -> None:
    assert run("history").out == "nothing has been recorded yet\n"
    assert run("history", "--json").json["runs"] == []


def test_a_missing_choice_is_told_without_escapes(run: Run) -> None:
    ended = run("schema")

    assert ended.code == 2
    assert "\\t" not in ended.err
    assert {"  plan,", "  service"} <= set(ended.err.splitlines())


def test_an_incident_without_a_reason_is_one_clear_error(nowhere: Path, run: Run) -> None:
    (nowhere / "plan.yml").write_text("version: 1\n")
    ended = run("apply", "--incident", " ", "plan.yml")

    assert (ended.code, ended.out) == (2, "")
    assert "--incident needs a reason" in ended.err
    assert [path.name for path in nowhere.iterdir()] == ["plan.yml"]
