"""`changectl selftest`: what the record has of it, in words, as a document and as an exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits
from tests.unit.cli.recorded import keep
from tests.workflow.stage import Stage
from tests.workflow.test_selftest import proven

from changectl.core.history.runs import runs
from changectl.store import open_store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "changectl.toml").touch()
    return tmp_path


def seeing() -> Stage:
    stage = Stage()
    proven(stage)
    return stage


def blind() -> Stage:
    stage = Stage()
    stage.host.shows = 0.0
    proven(stage)
    return stage


def cut_off() -> Stage:
    stage = seeing()
    del stage.journal.lines[7:]
    return stage


@pytest.mark.parametrize(
    ("story", "code", "reason", "told"),
    [
        (seeing, 0, "sees", ("gpu1: measuring sees", "delay put in", "ttft_user moved by", "regressed")),
        (blind, 3, "blind", ("measuring is BLIND", "was not judged a regression of ttft_user", "what to do: trials")),
        (cut_off, 3, "cut_off", ("it was cut off: that proves nothing",)),
    ],
)
def test_the_last_one_is_told_from_the_record(
    run: Run, project: Path, story: Callable[[], Stage], code: int, reason: str, told: tuple[str, ...]
) -> None:
    keep(story(), project)
    document = run("selftest", "chat", "--last", "--json")
    said = run("selftest", "chat", "--last")

    fits(document.json, "selftest")
    assert (document.code, said.code, document.json["reason"]) == (code, code, reason)
    assert document.json["instances"][0]["host"] == "gpu1"
    text = " ".join(said.out.split())
    assert [part for part in told if part not in text] == []


def test_a_service_whose_measuring_was_never_proven_is_no_good_news(run: Run, project: Path) -> None:
    keep(seeing(), project)
    document = run("selftest", "other", "--last", "--json")
    fits(document.json, "selftest")
    assert (document.code, document.json["reason"], document.json["instances"]) == (3, "never", [])
    assert "never proven" in run("selftest", "other", "--last").out


def test_it_is_no_run_that_changed_anything_and_the_record_stays_sound(run: Run, project: Path) -> None:
    keep(seeing(), project)

    assert run("history", "--json").json["runs"] == []
    assert run("status").code == 0
    assert run("audit", "verify").code == 0
    shown = run("show", "R1")
    assert (shown.code, "changectl selftest chat --last" in " ".join(shown.err.split())) == (2, True)
    with open_store(project / ".changectl/changectl.db", project / ".changectl/key") as store:
        assert [one.run for one in runs(store.journal.select(kinds=("run.opened",)))] == []


def test_raw_records_that_were_lost_are_found_by_the_audit(run: Run, project: Path) -> None:
    stage = seeing()
    keep(stage, project)
    digest = next(iter(stage.records.blobs))
    (project / ".changectl" / "blobs" / digest[:2] / digest).unlink()
    assert run("audit", "verify").code == 3
