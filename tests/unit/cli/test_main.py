from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.unit.cli.cli_runner import Run

import changectl
from changectl.cli import _failures
from changectl.cli.main import command
from changectl.core import errors

SOURCES = Path(changectl.__file__).parent.parent
HEAVY = {"pydantic", "rich", "ruamel", "jinja2", "sqlmodel", "sqlalchemy", "numpy", "scipy", "ansible", "paramiko"}


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from changectl.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"

    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=True
    )

    assert {name.partition(".")[0] for name in done.stderr.split()} & HEAVY == set()


def test_every_command_teaches_by_an_example(run: Run) -> None:
    context = click.Context(command)
    for name in ("init", "schema", "validate"):
        assert name in command.list_commands(context)
        ended = run(name, "--help")
        assert ended.code == 0
        assert f"changectl {name}" in ended.out.partition("Example:")[2]


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").out == f"changectl {changectl.__version__}\n"


@pytest.mark.parametrize("name", ["nonsense", "main", "wiring", "_options", "../init"])
def test_only_commands_are_commands(run: Run, name: str) -> None:
    ended = run(name)

    assert ended.code == 2
    assert "No such command" in ended.err


@pytest.mark.parametrize(("typed", "meant"), [("aply", "apply"), ("valdate", "validate"), ("reverse", "revert")])
def test_a_mistyped_command_names_the_one_that_was_meant(run: Run, typed: str, meant: str) -> None:
    ended = run(typed)

    assert ended.code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in ended.err


def test_a_bare_command_is_answered_with_its_help_once(run: Run) -> None:
    ended = run()

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("Usage: changectl") == 1
    assert "Error:" not in ended.err


def test_what_may_be_left_out_stands_in_brackets(run: Run) -> None:
    assert "Usage: changectl recover [OPTIONS] [RUN]" in run("recover", "--help").out


def test_the_examples_of_the_help_are_the_plans_that_init_writes(project: Path, run: Run) -> None:
    for name in ("plan", "apply", "validate"):
        for plan in re.findall(r"changeplans/[0-9a-z-]+\.yml", run(name, "--help").out):
            assert (project / plan).is_file(), (name, plan)


def test_an_unknown_option_is_exit_code_2_also_as_json(run: Run) -> None:
    ended = run("init", "--nonsense", "--json")

    assert ended.code == 2
    assert ended.json["error"]["reason"] == "bad_usage"


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.InputError("x"), 2, "bad_input"),
        (errors.Refused("x", reason="no_room"), 3, "no_room"),
        (errors.Locked("x"), 7, "locked"),
        (errors.ContactLost("x"), 9, "contact_lost"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (ZeroDivisionError("division"), 1, "unexpected_error"),
    ],
)
def test_every_error_has_its_exit_code_and_reason(
    error: BaseException, code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _failures.report(error, as_json=False, debug=False) == code
    plain = capsys.readouterr()
    assert _failures.report(error, as_json=True, debug=False) == code
    document = json.loads(capsys.readouterr().out)

    assert plain.out == ""
    assert plain.err
    assert (document["exit_code"], document["error"]["reason"]) == (code, reason)


def test_an_unexpected_error_names_the_way_to_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    _failures.report(ZeroDivisionError("division"), as_json=False, debug=False)
    short = capsys.readouterr().err
    _failures.report(ZeroDivisionError("division"), as_json=False, debug=True)

    assert (
        short == "unexpected error: ZeroDivisionError: division\nRun the same command with --debug for the traceback.\n"
    )
    assert "ZeroDivisionError" in capsys.readouterr().err.splitlines()[0]


def test_a_reader_that_leaves_is_no_traceback(tmp_path: Path) -> None:
    script = "import sys; from changectl.cli.main import main; sys.exit(main(['schema', 'service']))"
    piped = f"'{sys.executable}' -c \"{script}\" | head -c 1"

    environment = {"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"}

    done = subprocess.run(["bash", "-c", piped], env=environment, capture_output=True, text=True, check=False)

    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
