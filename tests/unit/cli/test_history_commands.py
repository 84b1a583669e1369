from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.core.history.history_samples import ROWS, Tape

from changectl.cli.main import main
from changectl.store import open_store
from changectl.store.store import Store

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/records.schema.json").read_text())
EVIL = "\x1b[31mred\x1b[0m \u202egnp [bold]x[/bold] \x07"

Run = Callable[..., str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(project: Path) -> Store:
    with open_store(project / ".changectl" / "changectl.db", project / ".changectl" / "key") as opened:
        yield opened


def record(store: Store, tape: Tape) -> None:
    for event in tape.events:
        store.journal.append(event.run, event.kind, event.body, step=event.step)


@pytest.fixture
def told(store: Store) -> Store:
    tape = Tape()
    tape.whole("20261130-aa")
    tape.whole("20261130-bb", "reverted", "regressed", service="search", hosts=["gpu2"], actor="bob@laptop")
    tape.whole("20261130-cc", "kept_unjudged", None)
    tape.opened("20261201-dd")
    tape.add("20261201-dd", "write.intent", {"host": "gpu1", "path": "/etc/x"}, step=1)
    record(store, tape)
    return store


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str, exit_code: int = 0) -> str:
        assert main(list(arguments)) == exit_code
        captured = capsys.readouterr()
        return captured.out if "--json" in arguments and exit_code == 0 else captured.out + captured.err

    return call


def document(run: Run, *arguments: str) -> Any:
    found = json.loads(run(*arguments, "--json"))
    which = {"$ref": f"#/$defs/{arguments[0]}", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    jsonschema.validate(found, which, cls=jsonschema.Draft202012Validator)
    return found


@pytest.mark.usefixtures("told")
def test_history_lists_the_newest_first_and_fits_the_schema(run: Run) -> None:
    found = document(run, "history")
    assert [one["run"] for one in found["runs"]] == ["20261201-dd", "20261130-cc", "20261130-bb", "20261130-aa"]

    text = run("history")
    for part in ("20261130-aa/1", "max-num-seqs: 64 -> 128", "kept, improved", "ann@gateway", "GPU idle"):
        assert part in text


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--service", "search"], ["bb"]),
        (["--host", "gpu2"], ["bb"]),
        (["--outcome", "kept"], ["aa"]),
        (["--outcome", "open"], ["dd"]),
        (["--verdict", "regressed"], ["bb"]),
        (["--actor", "bob"], ["bb"]),
        (["--change", "max_num_seqs", "--limit", "1"], ["dd"]),
        (["--change", "concurrency_limit", "--limit", "1"], ["dd"]),
        (["--change", "parallel"], []),
        (["--since", "1h"], ["dd", "cc", "bb", "aa"]),
        (["--until", "2001-01-01"], []),
    ],
)
def test_history_filters(run: Run, options: Sequence[str], expected: list[str]) -> None:
    assert [one["run"][-2:] for one in document(run, "history", *options)["runs"]] == expected


@pytest.mark.parametrize(
    "options", [["--outcome", "keept"], ["--verdict", "good"], ["--since", "yesterday"], ["--limit", "-1"]]
)
@pytest.mark.usefixtures("told")
def test_a_mistyped_filter_is_an_error_and_not_an_empty_list(run: Run, options: Sequence[str]) -> None:
    said = run("history", *options, exit_code=2)
    assert options[1] in said


def test_before_the_first_change_there_is_nothing_and_nothing_is_created(run: Run, project: Path) -> None:
    (project / "changectl.toml").write_text("")
    assert document(run, "history")["runs"] == []
    assert document(run, "status")["services"] == []
    assert "nothing has been recorded yet" in run("show", "r1", exit_code=2)
    assert [one.name for one in project.iterdir()] == ["changectl.toml"]


@pytest.mark.usefixtures("told")
def test_show_tells_what_why_who_and_what_came_of_it(run: Run) -> None:
    text = run("show", "20261130-aa")
    for part in (
        "run 20261130-aa",
        "ticket   OPS-1",
        "why      GPU idle",
        "ann@gateway, with changectl 0.1.0",
        "chat on gpu1",
        "-max-num-seqs: 64",
        "+max-num-seqs: 128",
        "rps_ok at peak\t4 rps\t5 rps\t+25%",
        "no data\tunbounded",
        "not judged: too few",
        "- it is faster",
        "3 GB needed, 40 GB free",
        "gpu1\t64 -> 128\t64 -> 128\tnot known\tyes",
        "restart\tgpu1\tdone",
        "12.5s",
    ):
        assert part in text


@pytest.mark.usefixtures("told")
def test_show_fits_the_schema_and_can_tell_one_step_alone(run: Run) -> None:
    found = document(run, "show", "20261130-aa/1")
    assert found["steps"][0]["rows"] == [{"host": "gpu1", **row} for row in ROWS]
    assert found["run"]["outage_seconds"] == 12.5
    assert {entry["step"] for entry in found["timeline"]} == {0, 1}
    assert "has no step 2" in run("show", "20261130-aa/2", exit_code=2)


@pytest.mark.usefixtures("told")
def test_an_interrupted_run_shows_what_was_begun(run: Run) -> None:
    assert "write\tgpu1\tunfinished" in run("show", "20261201")
    assert document(run, "show", "20261201")["run"]["outcome"] == "open"


@pytest.mark.usefixtures("told")
def test_the_beginning_of_a_run_is_enough_where_it_is_clear(run: Run) -> None:
    assert document(run, "show", "20261201")["run"]["run"] == "20261201-dd"
    said = run("show", "20261130", exit_code=2)
    assert "20261130-aa, 20261130-bb, 20261130-cc" in said
    assert "20261130-aa" in run("show", "20261130-ax", exit_code=2)


def test_show_says_no_cause_where_the_outcome_says_it_all(run: Run, store: Store) -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "step.closed", {"outcome": "kept", "reason": "kept", "text": ""}, step=1)
    record(store, tape)

    assert "ended because" not in run("show", "r1")


@pytest.mark.usefixtures("told")
def test_diff_shows_the_recorded_difference(run: Run) -> None:
    found = document(run, "diff", "20261130-aa")
    assert [(edit["step"], edit["host"], edit["path"]) for edit in found["edits"]] == [
        (1, "gpu1", "/etc/vllm/chat.yaml")
    ]
    assert "+max-num-seqs: 128" in run("diff", "20261130-aa/1")
    assert "recorded no edit" in run("diff", "20261201-dd")


@pytest.mark.usefixtures("told")
def test_status_tells_unfinished_and_unjudged(run: Run) -> None:
    chat, search = document(run, "status")["services"]
    assert (chat["last"]["run"], chat["standing"]) == ("20261201-dd", "20261130-cc")
    assert chat["open_runs"] == [{"run": "20261201-dd", "running": False}]
    assert chat["kept_unjudged"] == ["20261130-cc/1"]
    assert (search["service"], search["standing"]) == ("search", None)
    assert "its process is gone" in run("status", "chat")
    assert "chat, search" in run("status", "chatt", exit_code=2)


def test_status_knows_a_run_that_is_going_on(run: Run, told: Store) -> None:
    with told.records.lock("chat", "20261201-dd", "ann@gateway"):
        assert "run 20261201-dd is going on" in run("status", "chat")


def test_a_run_that_was_cut_off_and_taken_back_is_told_as_that(run: Run, told: Store) -> None:
    tape = Tape()
    tape.opened("20261202-ee", steps=0, reverts="20261201-dd")
    tape.closed("20261202-ee", "reverted", 0)
    record(told, tape)

    (chat, _) = document(run, "status")["services"]
    assert chat["open_runs"] == []
    shown = document(run, "show", "20261201-dd")["run"]
    assert (shown["outcome"], shown["reverted_by"], shown["settled_by"]) == ("open", "20261202-ee", "20261202-ee")
    assert "cut off: its end is not recorded; reverted by 20261202-ee" in run("show", "20261201-dd")
    assert "open, reverted by 20261202-ee" in run("history")


def test_a_run_that_had_nothing_to_do_says_so(run: Run, store: Store) -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "step.closed", {"outcome": "kept", "reason": "nothing_to_do"}, step=1)
    tape.closed("r1", "kept", 0)
    record(store, tape)

    text = run("status")
    assert "kept: there was nothing to do" in text
    assert "nothing that changectl changed" in text


def test_more_than_one_percent_of_failures_is_flagged_everywhere(run: Run, store: Store) -> None:
    tape = Tape()
    tape.opened("r1")
    flag = {"code": "failures_above_1_percent", "text": "1.4 % of the requests failed at peak after the change"}
    tape.add("r1", "verdict", {"verdict": "no_gross_harm", "reasons": [], "rows": [], "flags": [flag]}, step=1)
    record(store, tape)

    assert "more than 1 % of the requests failed: r1/1" in run("history")
    assert flag["text"] in run("show", "r1")
    assert "r1/1: more than 1 % of the requests failed" in run("status")
    assert document(run, "history")["runs"][0]["steps"][0]["failures_above_1_percent"] is True


def test_foreign_text_cannot_steer_the_terminal(run: Run, store: Store) -> None:
    tape = Tape()
    tape.opened("r1", reason=EVIL, actor=EVIL, hosts=[EVIL], plan=EVIL, service=EVIL)
    edit = {"host": EVIL, "path": EVIL, "diff": f"-{EVIL}\n+{EVIL}\n", "before_sha": None, "after_sha": None}
    tape.add("r1", "edit", edit, step=1)
    reasons = [{"code": "x", "text": EVIL}]
    tape.add(
        "r1", "verdict", {"verdict": EVIL, "reasons": reasons, "rows": [{"metric": EVIL}], "flags": reasons}, step=1
    )
    tape.add("r1", "write.outcome", {"ok": False, "message": EVIL}, step=1)
    record(store, tape)

    for arguments in (["history"], ["show", "r1"], ["diff", "r1"], ["status"], ["show", "r1", "--json"]):
        text = run(*arguments)
        assert not {"\x1b", "\u202e", "\x07"} & set(text)
        assert "[bold]x[/bold]" in text


def test_help_loads_neither_the_database_layer_nor_numpy() -> None:
    code = (
        "import sys; from changectl.cli.main import main; main(['history', '--help']); "
        "print([name for name in ('sqlmodel', 'sqlalchemy', 'pydantic', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("command", ["history", "status"])
def test_whatever_is_looked_at_a_run_that_was_cut_off_is_named_with_its_way_out(command: str, run: Run) -> None:
    said = run(command).splitlines()
    at = said.index("run 20261201-dd on service chat was cut off; settle it:")
    assert said[at + 1] == "  changectl recover 20261201-dd"
