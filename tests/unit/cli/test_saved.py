"""A host has lost what it had saved: the controller's own encrypted copy still gives a person the files."""

from __future__ import annotations

import base64
import io
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.reports.block_text import lines
from tests.workflow.fake_host import ENV, UNIT
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.cli._present import print_blocks
from changectl.cli._rescue import inside
from changectl.core.history.saved import SavedFile, SnapshotCopy, read_copy
from changectl.core.observed import FileFacts
from changectl.reports import saved as report
from changectl.reports.printer import Printer
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
    checked(document)
    file = next(file for file in document["saved"][0]["files"] if file["path"] == ENV)
    assert Path(file["laid_into"]).read_bytes()
    assert "content" not in file


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("kind", ["full", "empty", "link", "link to nowhere"])
def test_whatever_is_there_already_is_refused_even_where_it_is_empty(run: Run, kind: str) -> None:
    Path("elsewhere").mkdir()
    if kind.startswith("link"):
        Path("rescued").symlink_to("elsewhere" if kind == "link" else "nowhere")
    else:
        Path("rescued").mkdir()
    if kind == "full":
        Path("rescued/mine").write_text("mine")
    before = sorted(Path().rglob("*"))
    said = run("saved", "R1", "--to", "rescued")
    assert said.code == 2
    assert "there already" in said.err
    assert sorted(Path().rglob("*")) == before


@pytest.mark.usefixtures("stage")
def test_a_folder_that_cannot_be_made_is_one_mistake_in_words(run: Run) -> None:
    Path("file").write_text("")
    for place in ("file/rescued", "no/such/parent"):
        said = run("saved", "R1", "--to", place)
        assert (said.code, said.out) == (2, "")
        assert f"{place} cannot be made" in said.err


@pytest.mark.parametrize("damage", ["gone", "changed", "newer", "no path"])
def test_one_copy_that_is_lost_keeps_nobody_from_the_others(run: Run, stage: Stage, damage: str) -> None:
    lose(stage, damage)
    said = run("saved", "R1", "--to", "rescued")
    assert said.code == 3
    assert "gpu1, as it was before step 1 of R1" in said.out
    assert "LOST: " in said.out
    assert not Path("rescued/gpu1/1").exists()
    second = Path("rescued/gpu1/2/files") / UNIT.lstrip("/")
    assert second.read_bytes() == stage.host.saved["R1.2"][UNIT]

    document = run("saved", "R1", "--json").json
    assert (document["exit_code"], {one["step"] for one in document["lost"]}) == (3, {1})
    assert [one["step"] for one in document["saved"]] == [2]
    checked(document)


def lose(stage: Stage, damage: str) -> None:
    """Spoil the copy of what was saved before the first step."""
    first = str(stage.journal.bodies("capture.outcome")[0]["copy"])
    kept = next(Path(".changectl/snapshots").rglob(first))
    if damage == "gone":
        kept.unlink()
    elif damage == "changed":
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    else:
        document = json.loads(stage.records.snapshots[first])
        if damage == "newer":
            document["format"] = 2
        else:
            document["observed"]["files"][UNIT]["resolved"] = "/etc/a\0b"
        with open_store(Path(".changectl/changectl.db"), KEY) as store:
            digest = store.records.put_snapshot("R1.1", "gpu1", json.dumps(document).encode())
            opened = next(event for event in stage.journal.lines if event.kind == "capture.outcome")
            store.journal.append(opened.run, opened.kind, {**opened.body, "copy": digest}, step=1)
        kept.unlink()


def checked(document: Any) -> None:
    which = {"$ref": "#/$defs/saved", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    jsonschema.validate(document, which, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("place", ["/etc/a\0b", "/etc/\ud800"])
def test_a_copy_with_a_path_that_no_file_can_have_is_one_clear_error(place: str) -> None:
    observed = {"files": {"/etc/x": {"exists": True, "resolved": place, "content": ""}}}
    with pytest.raises(ValueError, match="no file can have the path"):
        read_copy(json.dumps({"format": 1, "observed": observed}).encode())


@pytest.mark.parametrize(
    ("instance", "folder"),
    [("gpu1", "gpu1"), ("..", "%2E%2E"), (".", "%2E"), ("../x", "..%2Fx"), ("a/b", "a%2Fb"), ("\0", "%00"),
     ("gpu1.lan", "gpu1.lan"), ("\ud800", "%ED%A0%80")],
)  # fmt: skip
def test_no_name_of_an_instance_leads_out_of_the_folder(instance: str, folder: str) -> None:
    assert inside(instance) == folder


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
        ({"exists": False}, None, None),  # a file of that name may be somebody else's by now
    ],
)
def test_the_command_that_puts_a_file_back(told: Mapping[str, Any], data: bytes | None, command: str | None) -> None:
    file = SavedFile("/etc/link", "/etc/x", facts(**told), data)
    assert file.put_back("files/etc/x") == command


def test_a_name_with_blanks_stays_one_word_of_a_shell() -> None:
    assert SavedFile("x", "/etc/a b;c", facts(), b"").put_back("x").endswith(" x '/etc/a b;c'")


def test_a_file_that_did_not_exist_is_told_in_words_and_not_with_a_command_that_removes() -> None:
    copy = SnapshotCopy("R1", 1, "gpu1", "digest")
    blocks = report.as_blocks([(copy, [SavedFile("/etc/x", "/etc/x", facts(exists=False), None)], Path("r"))], [])
    assert any("/etc/x did not exist: if it is there now, look whose it is" in line for line in lines(blocks))
    assert not any(line.startswith("rm") for line in lines(blocks))


def test_the_commands_that_put_files_back_are_not_folded_on_a_terminal() -> None:
    place = "/etc/a/long/path/of/a/configuration/that/no/narrow/terminal/has/room/for.yaml"
    copy, out = SnapshotCopy("R1", 1, "gpu1", "digest"), io.StringIO()
    blocks = report.as_blocks([(copy, [SavedFile(place, place, facts(), b"")], Path("r"))], [])
    print_blocks(blocks, Printer(out, out, terminal=True, width=60))
    assert f"  install -o 990 -g 990 -m 0640 files{place} {place}" in out.getvalue().splitlines()


def test_the_bytes_are_those_that_were_saved() -> None:
    whole = bytes(range(256))
    told = facts(content=base64.b64encode(whole).decode())
    assert told.data == whole
