"""`changectl mark` and `changectl ledger`: what operators made of past verdicts, and how often they were wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits
from tests.unit.cli.recorded import keep
from tests.unit.cli.test_compare import two_runs
from tests.workflow.stage import Stage
from tests.workflow.test_trial import GAIN, SAME, carried_out, plan

from changectl.core.history.events import SUMMARY_KINDS
from changectl.core.replaying.ledger import Opinion, Rate
from changectl.core.replaying.ledger_read import ledger
from changectl.store import open_store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SECRET = "correct-horse-battery-staple"


def quick(slots: int) -> Stage:
    stage = Stage()
    carried_out(stage, plan(slots, effort="quick"))
    return stage


def test_with_nothing_judged_it_says_so_and_names_what_waits(run: Run, project: Path) -> None:
    keep(quick(5), project)
    document = run("ledger", "--json").json

    fits(document, "ledger")
    assert document["unjudged"] == ["R1/1"]
    assert document["missed"] == {"wrong": 0, "judged": 0, "verdicts": 1, "share": None, "low": 0.0, "high": 1.0}
    said = run("ledger")
    for part in ("nobody has judged any verdict yet", "not known", "anything", "changectl mark R1/1 right"):
        assert part in said.out


def test_before_any_verdict_there_is_no_rate(run: Run, project: Path) -> None:
    (project / "changectl.toml").touch()
    ended = run("ledger")

    assert (ended.code, "no verdict has said anything yet" in ended.out) == (0, True)
    assert [one.name for one in project.iterdir()] == ["changectl.toml"]


def test_a_secret_that_somebody_types_as_the_reason_of_a_mark_is_not_recorded(run: Run, project: Path) -> None:
    keep(quick(5), project)
    marked = run("mark", "R1", "wrong", "--why", f"slower, see password={SECRET}", "--json")

    assert (marked.code, marked.json["why"].startswith("slower, see password=")) == (0, True)
    assert SECRET not in marked.out
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in project.rglob("*") if path.is_file())


def test_an_operators_last_word_counts_and_the_run_stays_as_it_was(run: Run, project: Path) -> None:
    keep(quick(5), project)
    story, audit = run("show", "R1", "--json").json, run("audit", "verify", "--json").json
    marked = run("mark", "R1", "wrong", "--why", "OPS-81 slower since", "--json")

    assert marked.code == 0
    fits(marked.json, "mark")
    assert (marked.json["said"], marked.json["right"], marked.json["why"]) == ("keep", False, "OPS-81 slower since")
    found = run("ledger", "--json").json
    fits(found, "ledger")
    assert (found["missed"]["wrong"], found["missed"]["judged"], found["unjudged"]) == (1, 1, [])
    assert run("mark", "R1/1", "right").code == 0
    found = run("ledger", "--json").json
    assert (found["missed"]["wrong"], found["missed"]["judged"], found["missed"]["share"]) == (0, 1, 0.0)
    assert [one["right"] for one in found["entries"][0]["opinions"]] == [False, True]

    after = run("show", "R1", "--json").json
    marks = [(entry["action"], entry["detail"].split(",")[0]) for entry in after["timeline"]][-2:]
    assert marks == [("mark", "wrong"), ("mark", "right")]
    assert {**after, "timeline": after["timeline"][:-2]} == story
    assert run("judge", "R1").code == 0
    audited = run("audit", "verify", "--json").json
    assert (audited["linked"], audited["events"]) == (True, audit["events"] + 2)
    assert audited["findings"] == audit["findings"]  # the fake's witnesses know no hashes
    told = run("ledger").out
    assert "OPS-81 slower since" in told
    assert "Clopper and Pearson" in told


def unfinished() -> Stage:
    stage = quick(5)
    stage.journal.lines = [event for event in stage.journal.lines if event.kind != "run.closed"]
    return stage


def undecided() -> Stage:
    stage = Stage()
    stage.host.requests = 8
    carried_out(stage, plan(5, effort="quick"))
    return stage


def without_the_gain() -> Stage:
    stage = Stage()
    carried_out(stage, plan(SAME, GAIN))
    return stage


def two_steps() -> Stage:
    stage = Stage()
    stage.apply(5, 6)
    return stage


@pytest.mark.parametrize(
    ("story", "code", "told"),
    [
        (unfinished, 3, "changectl recover R1"),
        (undecided, 3, "said nothing that could be right or wrong"),
        (without_the_gain, 3, "said nothing that could be right or wrong (unchanged)"),
        (two_steps, 2, "write one of them: R1/1, R1/2"),
    ],
)
def test_what_cannot_be_marked_is_refused_and_nothing_is_recorded(
    story: Callable[[], Stage], code: int, told: str, run: Run, project: Path
) -> None:
    stage = story()
    keep(stage, project)
    ended = run("mark", "R1", "right")

    assert (ended.code, ended.out, told in ended.err) == (code, "", True), ended.err
    with open_store(project / ".changectl" / "changectl.db", project / ".changectl" / "key") as store:
        assert store.journal.head()[0] == len(stage.journal.lines)
    assert [run("mark", "R9", "right").code, run("mark", "R1", "perhaps").code] == [2, 2]


def test_a_change_that_lacked_its_gain_and_was_taken_back_counts_in_neither_rate() -> None:
    stage = without_the_gain()
    (verdict,) = stage.journal.bodies("verdict")
    found = ledger(stage.journal.lines)

    assert (verdict["verdict"], verdict["decision"], found.entries) == ("unchanged", "revert", ())
    assert found.rate("revert") == found.rate("keep") == Rate(wrong=0, judged=0, verdicts=0)


def test_one_that_says_wrong_outweighs_the_others_until_an_operator_decides() -> None:
    (entry,) = ledger(quick(5).journal.lines).entries

    def judged(*told: tuple[str, bool]) -> bool | None:
        made = tuple(Opinion(by, right, "", "", "R1") for by, right in told)  # type: ignore[arg-type]
        return type(entry)(entry.run, 1, "chat", "", "improved", "keep", made).right

    assert judged() is None
    assert judged(("watch", True), ("later_baseline", False)) is False
    assert judged(("watch", True), ("later_baseline", True)) is True
    assert judged(("operator", True), ("later_baseline", False)) is True


def test_an_earlier_programs_verdict_without_terms_waits_for_an_operator(project: Path) -> None:
    stage = two_runs()
    for event in stage.journal.lines:
        if event.kind == "verdict":
            dict.pop(event.body, "terms")  # type: ignore[arg-type]
    found = ledger(stage.journal.lines)

    assert [entry.right for entry in found.entries] == [None, None]
    assert [event for event in stage.journal.lines if event.kind in SUMMARY_KINDS]


@pytest.mark.parametrize(
    ("wrong", "judged", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.3085), (1, 20, 0.0013, 0.2487), (5, 10, 0.1871, 0.8129), (3, 3, 0.2924, 1.0)],
)
def test_the_interval_is_that_of_clopper_and_pearson(wrong: int, judged: int, low: float, high: float) -> None:
    assert Rate(wrong, judged, judged).interval == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_share_lies_in_its_interval_and_more_evidence_makes_it_narrower(wrong: int, right: int) -> None:
    rate = Rate(wrong, wrong + right, wrong + right)
    low, high = rate.interval

    assert 0 <= low <= high <= 1
    assert rate.share is None or low <= rate.share <= high
    more = Rate(4 * wrong, 4 * (wrong + right), 0).interval
    assert more[1] - more[0] <= high - low + 1e-12


def test_one_service_can_be_asked_for(run: Run, project: Path) -> None:
    keep(quick(5), project)

    assert run("ledger", "--service", "chat", "--json").json["service"] == "chat"
    assert run("ledger", "--service", "chatt").code == 2
