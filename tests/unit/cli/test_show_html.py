"""`changectl show RUN --html FILE`: a page of a real record; nothing is overwritten, and what is lost is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.recorded import blob, keep
from tests.workflow.stage import Stage
from tests.workflow.test_trial import SAME, carried_out, plan


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.chdir(tmp_path)
    made = Stage()
    carried_out(made, plan(SAME, effort="quick"))
    keep(made, tmp_path)
    return made


def test_a_page_is_written_once_and_nothing_is_overwritten(stage: Stage, run: Run, tmp_path: Path) -> None:
    ended = run("show", "R1", "--html", "run.html")
    text = (tmp_path / "run.html").read_text()

    assert (ended.code, "run.html" in ended.out) == (0, True)
    assert (tmp_path / "run.html").stat().st_mode & 0o777 == 0o600
    assert "Distributions" in text
    assert "missing from the drawings" not in text
    again = run("show", "R1", "--html", "run.html")
    assert (again.code, "nothing is overwritten" in again.err) == (2, True)
    assert (tmp_path / "run.html").read_text() == text
    assert run("show", "R1", "--html", "no/such/folder.html").code == 2
    assert run("show", "R1/1", "--html", "-").out == text
    assert run("show", "R1", "--html", "-", "--json").code == 2
    assert run("show", "R1", "--html", "other.html", "--json").json["run"]["run"] == "R1"
    assert (tmp_path / "other.html").read_text() == text


def test_raw_records_that_are_lost_are_told_and_the_rest_is_shown(stage: Stage, run: Run, tmp_path: Path) -> None:
    for body in stage.journal.bodies("measure.outcome"):
        blob(tmp_path, body).unlink(missing_ok=True)
    ended = run("show", "R1", "--html", "-")

    assert ended.code == 0
    assert "raw records are missing from the drawings" in ended.out
    assert "Distributions" not in ended.out
    assert "Phases over time" in ended.out
