"""A host has lost what it had saved: the controller's own encrypted copy still gives a person the files."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.cli.cli_runner import Run
from tests.workflow.fake_host import ENV, UNIT
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.observed import FileFacts
from changectl.core.saved import SavedFile
from changectl.store import open_store

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/records.schema.json").read_text())
KEY = Path(".changectl/key")


def filed(stage: Stage) -> None:
    """The story of a stage, in the record of the project in the working directory."""
    with open_store(Path(".changectl/changectl.db"), KEY) as store:
        for event in stage.journal.lines:
            store.journal.append(event.run, event.kind, event.body, step=event.step)
        for data in stage.records.snapshots.values():
            store.records.put_snapshot("R1.1", "gpu1", data)


@pytest.fixture
def stage(project: Path) -> Stage:
    made = Stage()
    made.apply(BETTER, WORSE)
    filed(made)
    return made


@pytest.mark.usefixtures("stage")
def test_the_saved_files_are_listed_and_nothing_is_written(run: Run) -> None:
    before = sorted(Path().rglob("*"))
    said = run("saved", "R1/1")
    assert said.code == 0
    assert UNIT in said.out
    assert ENV in said.out
    assert "add --to FOLDER" in said.out
    assert sorted(Path().rglob("*")) == before


def test_the_files_of_every_step_are_laid_out_for_the_owner_alone(run: Run, stage: Stage) -> None:
    said = run("saved", "R1", "--to", "rescued")
    assert said.code == 0, said.err
    first, second = (Path("rescued/gpu1") / step / "files" / UNIT.lstrip("/") for step in ("1", "2"))
    assert first.read_bytes() == stage.host.saved["R1.1"][UNIT]
    assert second.read_bytes() == stage.host.saved["R1.2"][UNIT]
    assert first.read_bytes() != second.read_bytes()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path("rescued").rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in Path("rescued").rglob("*") if path.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})
    assert f"install files/{UNIT.lstrip('/')} {UNIT}" in said.out


@pytest.mark.usefixtures("stage")
def test_beside_the_files_lies_how_the_service_ran(run: Run) -> None:
    run("saved", "R1/1", "--to", "rescued")
    rest = json.loads(Path("rescued/gpu1/1/saved.json").read_text())
    assert rest["observed"]["process"]["argv"][0].endswith("llama-server")
    assert rest["model"]["files"]
    assert all("content" not in facts for facts in rest["observed"]["files"].values())


@pytest.mark.usefixtures("stage")
def test_the_document_is_as_the_schema_says(run: Run) -> None:
    document = json.loads(run("saved", "R1", "--to", "rescued", "--json").out)
    which = {"$ref": "#/$defs/saved", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    jsonschema.validate(document, which, cls=jsonschema.Draft202012Validator)
    file = next(file for file in document["saved"][0]["files"] if file["path"] == ENV)
    assert Path(file["laid_into"]).read_bytes()
    assert "content" not in file


@pytest.mark.usefixtures("stage")
def test_nothing_is_written_over(run: Run) -> None:
    Path("rescued").mkdir()
    Path("rescued/mine").write_text("mine")
    said = run("saved", "R1", "--to", "rescued")
    assert said.code == 2
    assert "there already" in said.err
    assert [path.name for path in Path("rescued").iterdir()] == ["mine"]


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(("typed", "words"), [("R1/9", "no step 9"), ("R7", "R7")])
def test_an_unknown_run_or_step_is_named(run: Run, typed: str, words: str) -> None:
    said = run("saved", typed)
    assert said.code == 2
    assert words in said.err


def test_a_run_that_saved_nothing_says_so(run: Run, project: Path) -> None:
    stage = Stage()
    stage.apply(4)  # as it is already
    filed(stage)
    said = run("saved", "R1")
    assert said.code == 2
    assert "saved nothing" in said.err


@pytest.mark.usefixtures("stage")
def test_without_the_key_it_says_where_else_the_files_are(run: Run) -> None:
    KEY.unlink()
    said = run("saved", "R1", "--to", "rescued")
    assert said.code == 3
    assert "bring it back from a backup" in said.err
    assert "restored there by hand" in said.err


def facts(**told: Any) -> FileFacts:
    return FileFacts.model_validate({"exists": True, "uid": 990, "gid": 990, "mode": 0o100640, **told})


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        ("/etc/vllm/chat.env", "etc/vllm/chat.env"),
        ("/etc/../../../root/.ssh/authorized_keys", "root/.ssh/authorized_keys"),
        ("../../x", "x"),
        ("//etc//x", "etc/x"),
    ],
)
def test_no_path_that_a_host_told_leads_out_of_the_folder(place: str, inside: str) -> None:
    assert SavedFile("/etc/x", place, facts(), b"").inside == inside


@pytest.mark.parametrize(
    ("told", "data", "command"),
    [
        ({}, b"x", "install -o 990 -g 990 -m 0640 files/etc/x /etc/x"),
        ({"owner": "vllm", "group": "gpu"}, b"x", "install -o vllm -g gpu -m 0640 files/etc/x /etc/x"),
        ({"exists": False}, None, "rm /etc/x"),
    ],
)
def test_the_command_that_puts_a_file_back(told: Mapping[str, Any], data: bytes | None, command: str) -> None:
    file = SavedFile("/etc/link", "/etc/x", facts(**told), data)
    assert file.put_back("files/etc/x") == command


def test_a_name_with_blanks_stays_one_word_of_a_shell() -> None:
    assert SavedFile("x", "/etc/a b;c", facts(), None).put_back("") == "rm '/etc/a b;c'"


def test_the_bytes_are_those_that_were_saved() -> None:
    whole = bytes(range(256))
    told = facts(content=base64.b64encode(whole).decode())
    assert told.data == whole
