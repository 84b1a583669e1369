"""Every document that a command prints with --json is as docs/reference/records.schema.json says."""

from __future__ import annotations

import dataclasses
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import SCHEMA, fits
from tests.workflow.crash import killed_at, settle
from tests.workflow.stage import BETTER, WORSE, Stage, plan_text
from tests.workflow.test_calibrate import calibrated, found_by

from changectl.cli import init, main, validate
from changectl.cli._result import run_document, show_run
from changectl.cli.plan import document as plan_document
from changectl.core.lifecycle import Ending
from changectl.core.ports import Event
from changectl.reports.printer import Printer
from changectl.workflow import apply as applying
from changectl.workflow import revert as reverting
from changectl.workflow.preview import preview

PLAN = "changeplans/0001-more-sequences.yml"
START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def at_their_times(events: list[Event]) -> list[Event]:
    """Events as a real journal returns them: with the time in UTC."""
    return [
        dataclasses.replace(event, at=(START + timedelta(seconds=number)).isoformat(timespec="microseconds"))
        for number, event in enumerate(events)
    ]


def printed(stage: Stage, run: str, ending: Ending, exit_code: int) -> dict[str, Any]:
    out = io.StringIO()
    events = at_their_times(list(stage.journal.events(run)))
    show_run(events, ending, exit_code, Printer(out, out, terminal=False), as_json=True)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_the_schema_is_a_schema_and_has_a_definition_for_every_command_with_a_document() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    names = {one["$ref"].rpartition("/")[2] for one in SCHEMA["anyOf"]}

    assert names - {"error"} == set(main.command.list_commands(click.Context(main.command))) - {"schema"}


@pytest.mark.parametrize(
    ("slots", "code", "reason"), [(BETTER, 0, "kept"), (WORSE, 4, "regressed"), (4, 0, "nothing_to_do")]
)
def test_apply(slots: int, code: int, reason: str) -> None:
    stage = Stage()
    end = stage.apply(slots)
    document = printed(stage, end.run, end.last, end.exit_code)

    fits(document, "apply")
    assert (document["exit_code"], document["reason"]) == (code, reason)


@pytest.mark.parametrize(
    ("slots", "code", "reason"), [(BETTER, 0, "kept"), (WORSE, 4, "regressed"), (5, 4, "unchanged")]
)
def test_apply_of_several_pairs(slots: int, code: int, reason: str) -> None:
    stage = Stage()
    text = plan_text(slots).replace("effort: quick", "outage: 30m").replace("neutral", "{ttft_user: -20%}")
    end = applying.apply(stage.order(text), stage.tools)
    document = printed(stage, end.run, end.last, end.exit_code)

    fits(document, "apply")
    assert (document["exit_code"], document["reason"]) == (code, reason)
    fits(plan_document(stage.order(text), preview(stage.order(text), stage.tools), 0), "plan")


@pytest.mark.parametrize(("known", "reason"), [(False, "calibrated"), (True, "nothing_to_do")])
def test_calibrate(known: bool, reason: str) -> None:
    stage = Stage()
    if known:
        first = Stage()
        calibrated(first)
        stage.memory.noise = found_by(first)
    end = calibrated(stage)
    document = printed(stage, end.run, end.last, end.exit_code)

    fits(document, "calibrate")
    assert (document["exit_code"], document["reason"]) == (0, reason)


def test_apply_that_is_refused() -> None:
    stage = Stage()
    end = stage.apply(-7)  # below what the engine takes
    document = printed(stage, end.run, end.last, end.exit_code)

    fits(document, "apply")
    assert (document["exit_code"], document["reason"]) == (3, "precheck_failed")


def test_revert() -> None:
    stage = Stage()
    kept = stage.apply(BETTER)
    order = reverting.what_to_revert(kept.run, stage.journal.events(kept.run), "why not")
    run, ending = reverting.revert(order, stage.placed, None, stage.tools)
    document = printed(stage, run, ending, reverting.exit_code(ending))

    fits(document, "revert")
    assert (document["run"]["reverts"], document["exit_code"]) == (kept.run, 0)


@pytest.mark.parametrize("slots", [BETTER, 4])
def test_plan(slots: int) -> None:
    stage = Stage()
    order = stage.order(plan_text(slots))

    fits(plan_document(order, preview(order, stage.tools), 0), "plan")


def test_validate_and_init(project: Path, run: Run) -> None:
    fits(run("validate", PLAN, "--json").json, "validate")
    fits(run("init", "elsewhere", "--json").json, "init")
    assert (validate.FORMAT, init.FORMAT) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["validate", "no-such.yml", "--json"], 2),
        (["plan", "no-such.yml", "--json"], 2),
        (["apply", "no-such.yml", "--json"], 2),
        (["revert", "no-such-run", "--json"], 2),
        (["show", "no-such-run", "--json"], 2),
        (["status", "no-such-service", "--json"], 2),
        (["init", "--json"], 2),
        (["apply", "--json", "--no-such-option"], 2),
    ],
)
def test_errors(project: Path, run: Run, arguments: list[str], code: int) -> None:
    ended = run(*arguments)

    assert ended.code == code
    fits(ended.json, "error")
    assert ended.json["exit_code"] == code


def test_a_plan_with_problems_names_their_places(project: Path, run: Run) -> None:
    (project / PLAN).write_text((project / PLAN).read_text().replace("effort: quick", "effort: slow"))
    document = run("validate", PLAN, "--json").json

    fits(document, "error")
    assert document["error"]["problems"][0]["line"] == 4


def test_recover() -> None:
    stage = killed_at(70, BETTER)
    ending = settle(stage)
    events = at_their_times(list(stage.journal.events("R1")))
    fits({"format": 1, "runs": [run_document(events, ending, 0)], "still_open": [], "exit_code": 0}, "recover")
