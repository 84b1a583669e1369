"""`changectl judge`: the verdict once more from the raw records of real trials, to the last bit."""

from __future__ import annotations

import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.cli.documents import fits
from tests.unit.cli.recorded import Body, blob, keep
from tests.workflow.incident_stage import crash_looping, mend
from tests.workflow.live_stage import Users, applied, live_stage
from tests.workflow.stage import BETTER, WORSE, Stage
from tests.workflow.test_extend import SHORT, extended, undecided
from tests.workflow.test_rollout import THREE, rolled
from tests.workflow.test_trial import GAIN, SAME, carried_out, plan

STRICT = "version: 1\nslo: {ttft_user_p50: <= 10ms}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def quick_record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, Path]:
    """A trial of one A and one B that was kept, recorded once for all."""
    folder = tmp_path_factory.mktemp("quick")
    stage = trial(SAME, effort="quick")
    keep(stage, folder)
    return stage, folder


@pytest.fixture
def quick(quick_record: tuple[Stage, Path], project: Path) -> Stage:
    """The same in the working directory, for one test to do with as it likes."""
    shutil.copytree(quick_record[1], project, dirs_exist_ok=True)
    return quick_record[0]


def trial(slots: int, expect: str = "neutral", effort: str = "standard", outage: str = "30m") -> Stage:
    stage = Stage()
    carried_out(stage, plan(slots, expect, effort, outage))
    return stage


def noisy() -> Stage:
    """Nothing can be decided on it."""
    stage = Stage()
    stage.host.speed = lambda argv, streams: (40 + 20 * (stage.host.starts % 3), 5)
    carried_out(stage, plan(SAME, GAIN))
    return stage


def several() -> Stage:
    stage = Stage(THREE)
    rolled(stage, effort="standard")
    return stage


def went_on() -> Stage:
    stage = undecided(plan(BETTER, GAIN, SHORT))
    extended(stage, plan(BETTER, GAIN, SHORT))
    return stage


def disturbed() -> Stage:
    """Another kernel from the third start on."""
    stage = Stage()

    def start(host: object) -> None:
        stage.host.kernel = "7" if stage.host.starts > 2 else stage.host.kernel

    stage.host.on_start = start
    carried_out(stage, plan(SAME))
    return stage


STORIES: dict[str, tuple[Callable[[], Stage], str, str]] = {
    "a gain": (partial(trial, BETTER, GAIN), "R1", "improved"),
    "nothing worse": (partial(trial, SAME), "R1", "unchanged"),
    "a gain that is not there": (partial(trial, SAME, GAIN), "R1", "unchanged"),
    "gross harm": (partial(trial, WORSE), "R1", "regressed"),
    "one look": (partial(trial, SAME, effort="quick"), "R1", "no_gross_harm"),
    "noise": (noisy, "R1", "inconclusive"),
    "out of its time": (partial(trial, SAME, GAIN, SHORT), "R1", "inconclusive"),
    "another kernel": (disturbed, "R1", "invalid"),
    "extended": (went_on, "R2", "improved"),
    "three instances": (several, "R1", "unchanged"),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_verdict_comes_out_of_its_raw_records_to_the_last_bit(name: str, run: Run, project: Path) -> None:
    story, which, verdict = STORIES[name]
    stage = story()
    keep(stage, project)
    ended = run("judge", which, "--json")

    fits(ended.json, "judge")
    found = ended.json["verdicts"]
    own = [event for event in stage.journal.lines if event.run == which and event.kind == "verdict"]
    assert [one["host"] for one in found] == [event.body["host"] for event in own]
    assert [(one["differs"], one["not_on_record"]) for one in found] == [(None, [])] * len(own)
    assert (found[0]["recorded"], found[0]["judgement"]["verdict"], ended.code) == (verdict, verdict, 0)
    assert found[0]["requests"] >= 48
    said = run("judge", which)
    assert (said.code, said.out.count("the same as recorded, to the last bit")) == (0, len(own))


def test_a_record_from_before_the_generator_tested_itself_is_judged_the_same_to_the_last_bit(
    run: Run, project: Path, quick_record: tuple[Stage, Path]
) -> None:
    parts = []

    def alter(kind: str, body: Body) -> None:
        if kind == "measure.outcome":
            parts.extend([body["summary"].pop("self_test"), body["basis"].pop("self_test")])

    keep(quick_record[0], project, alter)
    ended = run("judge", "R1", "--json")

    assert len(parts) == 4
    assert (ended.code, ended.json["reason"]) == (0, "same")
    assert ended.json["verdicts"][0]["not_on_record"] == []


def test_a_self_test_that_was_made_good_in_the_record_shows(
    run: Run, project: Path, quick_record: tuple[Stage, Path]
) -> None:
    def alter(kind: str, body: Body) -> None:
        if kind == "measure.outcome":
            body["summary"]["self_test"]["tries"][0]["ttft_p99"] = 0.0

    keep(quick_record[0], project, alter)
    ended = run("judge", "R1", "--json")

    assert (ended.code, ended.json["reason"]) == (3, "differs")
    assert ended.json["verdicts"][0]["differs"]["place"].endswith("self_test/tries/1/ttft_p99")


@pytest.mark.parametrize(
    ("kind", "way", "told"),
    [
        ("measure.outcome", ("summary", "levels", 0, "latency", "tpot", "p50"), "levels/normal/latency/tpot/p50"),
        ("measure.outcome", ("summary", "levels", 0, "n"), "levels/normal/n"),
        ("verdict", ("rows", 0, "after"), "verdict/rows/"),
        ("verdict", ("verdict",), "verdict/verdict"),
    ],
)
def test_a_figure_that_is_not_as_recorded_is_named(
    kind: str, way: tuple[str | int, ...], told: str, run: Run, project: Path
) -> None:
    def alter(its: str, body: Body) -> None:
        if its == kind:
            place = body
            for step in way[:-1]:
                place = place[step]
            place[way[-1]] = "improved" if way[-1] == "verdict" else place[way[-1]] * (1 + 2**-52) + (way[-1] == "n")

    keep(trial(WORSE), project, alter)
    ended = run("judge", "R1", "--json")

    fits(ended.json, "judge")
    (found,) = ended.json["verdicts"]
    assert (ended.code, ended.json["reason"], found["same"]) == (3, "differs", False)
    assert told in found["differs"]["place"]
    said = run("judge", "R1")
    assert (said.code, told in said.out.replace("\n", "")) == (3, True)


def test_figures_that_an_earlier_program_did_not_know_are_said_not_to_be_on_record(
    run: Run, project: Path, quick_record: tuple[Stage, Path]
) -> None:
    def alter(kind: str, body: Body) -> None:
        if kind == "measure.outcome":
            for level in body["summary"]["levels"]:
                del level["far"], level["not_sent"]

    keep(quick_record[0], project, alter)
    ended = run("judge", "R1", "--json")

    fits(ended.json, "judge")
    assert (ended.code, ended.json["reason"]) == (0, "same")
    assert ended.json["verdicts"][0]["not_on_record"] == ["far", "not_sent"]
    said = " ".join(run("judge", "R1").out.split())
    assert "the same as recorded; 2 figures are not on record (far, not_sent)" in said
    assert "last bit" not in said


@pytest.mark.parametrize(
    ("kind", "way", "told"),
    [
        ("measure.outcome", ("summary", "levels", 0, "in_flight_mean"), "levels/normal/in_flight_mean"),
        ("measure.outcome", ("summary", "levels", 0, "finish", "length"), "levels/normal/finish/length"),
        ("verdict", ("rows", 0, "evidence"), "/evidence"),
    ],
)
def test_what_was_taken_out_of_the_record_is_a_difference(
    kind: str, way: tuple[str | int, ...], told: str, run: Run, project: Path
) -> None:
    def alter(its: str, body: Body) -> None:
        if its == kind:
            place = body
            for step in way[:-1]:
                place = place[step]
            place.pop(way[-1])

    keep(trial(BETTER, GAIN), project, alter)
    ended = run("judge", "R1", "--json")

    (found,) = ended.json["verdicts"]
    assert (ended.code, found["same"], found["differs"]["recorded"]) == (3, False, "(absent)")
    assert told in found["differs"]["place"]


def _remove(path: Path) -> None:
    path.unlink()


def _damage(path: Path) -> None:
    data = bytearray(zlib.decompress(path.read_bytes()))
    data[-20] ^= 1
    path.write_bytes(zlib.compress(bytes(data)))


def _rubbish(path: Path) -> None:
    path.write_bytes(b"no zlib at all")


@pytest.mark.parametrize("harm", [_remove, _damage, _rubbish])
def test_raw_records_that_are_not_those_of_the_journal_are_one_clear_error(
    harm: Callable[[Path], None], run: Run, project: Path, quick: Stage
) -> None:
    harm(blob(project, quick.journal.bodies("measure.outcome")[0]))
    ended = run("judge", "R1")

    assert (ended.code, ended.out) == (3, "")
    for part in ("phase 1 (A)", "run R1/1", "nothing was judged", "changectl audit verify"):
        assert part in ended.err
    assert run("judge", "R1", "--json").json["error"]["reason"] == "records_lost"


@pytest.mark.usefixtures("quick")
def test_a_journal_that_was_rewritten_is_not_judged(run: Run, project: Path) -> None:
    with closing(sqlite3.connect(project / ".changectl" / "changectl.db")) as database:
        triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f"DROP TRIGGER {name}")
        other = "CAST(replace(CAST(body AS TEXT), 'no_gross_harm', 'improved') AS BLOB)"
        database.execute(f"UPDATE event SET body = {other} WHERE kind = 'verdict'")
        for _, sql in triggers:
            database.execute(sql)
        database.commit()
    ended = run("judge", "R1", "--json")

    assert (ended.code, ended.json["error"]["reason"]) == (3, "record_changed")
    assert "changectl audit verify" in ended.json["error"]["message"]


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        (STRICT, "regressed"),
        ("version: 1\naccept: {ttft_user: <= 2s}\n", "no_gross_harm"),
        ("version: 1\nclass: offline\n", "no_gross_harm"),
        ("version: 1\nexpect: {ttft_user: -20%}\nslo: {ttft_user_p50 at normal: <= 10ms}\n", "regressed"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_other_limits_say_what_they_would_have_said_and_the_record_stays(
    policy: str, verdict: str, run: Run, project: Path
) -> None:
    (project / "other.yml").write_text(policy)
    before = (project / ".changectl" / "changectl.db").read_bytes()
    ended = run("judge", "R1", "--policy", "other.yml", "--json")

    fits(ended.json, "judge")
    (found,) = ended.json["verdicts"]
    assert (ended.code, found["same"], found["judgement"]["verdict"]) == (0, True, "no_gross_harm")
    assert found["under_policy"]["verdict"] == verdict
    assert (project / ".changectl" / "changectl.db").read_bytes() == before
    said = run("judge", "R1", "--policy", "other.yml")
    assert "with the limits of other.yml" in said.out
    assert ("regressed instead of no_gross_harm" in said.out) == (verdict == "regressed")


def test_with_its_own_limits_as_a_policy_it_says_the_same(run: Run, project: Path) -> None:
    keep(trial(BETTER, GAIN), project)
    (project / "own.yml").write_text("version: 1\nclass: interactive\nexpect: {ttft_user: -20%}\n")
    (found,) = run("judge", "R1", "--policy", "own.yml", "--json").json["verdicts"]

    assert found["under_policy"] == found["judgement"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 1\nslo: {ttft_p95: <= 1s}\n", "other.yml:2"),
        ("version: 1\nslo: {ttft_user_p95 at peak: <= 1s}\n", 'there is no level "peak"'),
        ("version: 1\nslos: {}\n", "unknown key `slos`"),
        ("version: 1\n", "names no limit"),
        ("slo: [\n", "other.yml:"),
        (None, "cannot be read"),
    ],
)
def test_a_policy_that_is_not_understood_is_one_clear_error(
    text: str | None, told: str, run: Run, project: Path
) -> None:
    if text is not None:
        (project / "other.yml").write_text(text)
    ended = run("judge", "R1", "--policy", "other.yml")

    assert (ended.code, ended.out, told in ended.err) == (2, "", True), ended.err


def refused_before() -> Stage:
    stage = Stage()
    stage.host.refuses = lambda argv: "error: out of memory" if argv[-1] == "8" else None
    carried_out(stage, plan(BETTER, GAIN))
    return stage


def mended() -> Stage:
    stage = crash_looping()
    mend(stage)
    return stage


def observed() -> Stage:
    stage = live_stage(Users())
    applied(stage, "{observe: 5m}")
    return stage


@pytest.mark.parametrize(
    ("story", "reason"), [(refused_before, "not_judged"), (mended, "not_judged"), (observed, "live_traffic")]
)
def test_what_was_not_judged_by_requests_of_its_own_is_refused(
    story: Callable[[], Stage], reason: str, run: Run, project: Path
) -> None:
    keep(story(), project)
    ended = run("judge", "R1", "--json")

    assert (ended.code, ended.json["error"]["reason"]) == (3, reason)


@pytest.mark.parametrize(("kind", "key"), [("verdict", "terms"), ("measure.outcome", "basis")])
def test_a_run_of_an_earlier_program_is_refused_and_not_guessed(
    kind: str, key: str, run: Run, project: Path, quick_record: tuple[Stage, Path]
) -> None:
    keep(quick_record[0], project, lambda its, body: body.pop(key) and None if its == kind else None)
    ended = run("judge", "R1", "--json")

    assert (ended.code, ended.json["error"]["reason"]) == (3, "no_terms")


def test_a_trial_that_lacks_a_phase_is_refused(run: Run, project: Path, quick_record: tuple[Stage, Path]) -> None:
    def alter(kind: str, body: Body) -> None:
        if kind == "measure.outcome" and body["phase"] == "B":
            body["ok"] = False

    keep(quick_record[0], project, alter)
    ended = run("judge", "R1", "--json")

    assert (ended.code, ended.json["error"]["reason"]) == (3, "records_lost")
    assert "one A and one B" in ended.json["error"]["message"]


@pytest.mark.usefixtures("quick")
def test_a_run_or_step_that_is_not_there_is_a_mistake_of_the_command_line(run: Run, project: Path) -> None:
    assert [run("judge", which).code for which in ("R9", "R1/2", "R1/x")] == [2, 2, 2]
    assert run("judge", "R1/1").code == 0
    shutil.rmtree(project / ".changectl")
    assert run("judge", "R1").code == 2
