"""What an auditor reads: the record in words, with everything that a judgement about it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.history.history_samples import DIFF, Tape
from tests.unit.reports.block_text import lines

from changectl.core.history.reading import RunStory, run_story, runs, services
from changectl.reports import diff, history, show, status

WORKLOAD, MODEL, BLOB = "a" * 64, "b" * 64, "c" * 64
CONDITIONS = {
    "workload": WORKLOAD,
    "levels": {"busy": "20 streams"},
    "length": "100 requests",
    "seed": 0,
    "caller": "gpu1 (gpu1, loopback)",
    "model": MODEL,
    "engine": "llamacpp",
    "engine_version": "b6000",
}


def story(tape: Tape, run: str = "r1") -> RunStory:
    """The run's story with what later runs made of it, as commands read it."""
    own = run_story([event for event in tape.events if event.run == run])
    return replace(own, run=next(one for one in runs(tape.events) if one.run == run))


def shown(tape: Tape, run: str = "r1") -> list[str]:
    return lines(show.as_blocks(story(tape, run)))


def with_event(kind: str, body: dict[str, Any], **opened: Any) -> list[str]:
    tape = Tape()
    tape.opened("r1", **opened)
    tape.add("r1", kind, {"host": "gpu1", **body}, step=1)
    return shown(tape)


def measured(phase: str, **other: Any) -> dict[str, Any]:
    levels = [{"name": "busy", "n": 100, "ok": 97}]
    conditions = {**CONDITIONS, **other}
    return {"phase": phase, "fresh_start": phase == "B", "summary": {"levels": levels}, "conditions": conditions}


def test_the_sample_sizes_the_workload_the_model_and_the_engines_version_are_told() -> None:
    told = with_event("measure.outcome", measured("A"), workload="workloads/chat.jsonl", model="chat")

    assert "before | gpu1 | busy | 20 streams | 100 | 97 | no" in told
    assert f"workload: workloads/chat.jsonl, sha256 {WORKLOAD}" in told
    assert f"model: chat, sha256 {MODEL}" in told
    assert "engine: llamacpp, version b6000" in told
    assert "length: 100 requests at each level, seed 0" in told


def test_a_condition_that_differs_between_phases_is_told_of_both_and_an_unknown_one_as_that() -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "measure.outcome", {"host": "gpu1", **measured("A", engine_version=None)}, step=1)
    tape.add("r1", "measure.outcome", {"host": "gpu1", **measured("B", model=None)}, step=1)
    told = shown(tape)

    assert "engine: llamacpp, version not known; b6000" in told
    assert "after | gpu1 | busy | 20 streams | 100 | 97 | yes" in told
    assert any(line.startswith("model: ") and "not known" in line and MODEL in line for line in told)


@pytest.mark.parametrize(
    ("kind", "body", "sentences"),
    [
        (
            "ready.outcome",
            {"ok": True, "seconds": 12.34, "deadline": 60.0, "deadline_source": "the default", "detail": "2 tokens"},
            ["- gpu1: answered after 12.3s (deadline 60s: the default): 2 tokens"],
        ),
        (
            "ready.outcome",
            {"ok": False, "seconds": 9, "deadline": 60, "reason": "crash", "message": "it ended", "log": "oops\n"},
            ["- gpu1: no answer after 9s (deadline 60s): it ended", "oops"],
        ),
        (
            "verify.outcome",
            {"ok": True, "verified": True, "files": {"/etc/x": True}, "process": True, "model": True, "missing": []},
            [
                "- gpu1: proven: /etc/x equal to what was saved; the process runs as before; "
                "the model's files are the saved ones"
            ],
        ),
        (
            "verify.outcome",
            {"ok": True, "verified": False, "files": {"/etc/x": True, "/etc/y": False}, "missing": ["/etc/y differs"]},
            ["- gpu1: NOT proven: /etc/y differs", "- as saved: /etc/x equal to what was saved"],
        ),
        (
            "verify.outcome",
            {"ok": False, "reason": "contact_lost", "message": "gpu1: gone"},
            ["- gpu1: NOT proven: contact_lost: gpu1: gone"],
        ),
        (
            "evidence.outcome",
            {"ok": True, "blob": BLOB, "missing": {"log": "no right to read it"}},
            [f"- gpu1: log, metrics and host figures, sha256 {BLOB}", "- not kept: log: no right to read it"],
        ),
        ("evidence.outcome", {"ok": False, "message": "disk full"}, ["- gpu1: nothing could be kept: disk full"]),
        ("checks.outcome", {"ok": False, "passed": 3, "failed": 1}, ["- gpu1: 3 passed, 1 failed"]),
    ],
)
def test_what_was_waited_for_proven_and_kept_is_told_in_sentences(
    kind: str, body: dict[str, Any], sentences: list[str]
) -> None:
    told = with_event(kind, body)
    at = told.index(sentences[0])
    assert told[at : at + len(sentences)] == sentences


def test_the_ticket_and_the_reason_are_told_apart() -> None:
    tape = Tape()
    tape.whole("r1")
    assert {"ticket: OPS-1", "why: GPU idle"} <= set(shown(tape))
    assert lines(history.as_blocks(runs(tape.events)))[0].endswith(" | OPS-1 | GPU idle")


def test_the_list_of_runs_has_the_reasons_word() -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "step.closed", {"outcome": "refused", "verdict": None, "reason": "precheck_failed"}, step=1)
    tape.closed("r1", "refused", 3)
    assert " | refused, precheck_failed | " in lines(history.as_blocks(runs(tape.events)))[0]


def test_the_value_that_was_found_is_told_where_the_plan_names_none() -> None:
    tape = Tape()
    tape.opened("r1", steps=0)
    change = {"kind": "parameter", "name": "x", "to": "2"}
    tape.add("r1", "run.opened", {"steps": [{"change": change, "summary": "parameter x: whatever it is -> 2"}]})
    tape.add("r1", "contact", {"host": "gpu1", "facts": {"values": {"name": "x", "file": "'1'"}}}, step=1)

    assert "what: parameter x: 1 (as found) -> 2" in shown(tape)
    assert "x: 1 (as found) -> 2" in lines(history.as_blocks(runs(tape.events)))[0]
    assert show.as_json(story(tape))["steps"][0]["change"]["found"] == ["1"]


def applied(outcome: str = "kept") -> Tape:
    tape = Tape()
    tape.opened("r1")
    edit = {"host": "gpu1", "path": "/etc/x", "before_sha": "a" * 64, "after_sha": "b" * 64, "diff": DIFF}
    tape.add("r1", "edit", edit, step=1)
    tape.add("r1", "write.intent", {"host": "gpu1", "path": "/etc/x"}, step=1)
    tape.add("r1", "step.closed", {"outcome": outcome, "reason": "judged"}, step=1)
    tape.closed("r1", outcome, 0)
    return tape


def reverting(tape: Tape, run: str, reason: str = "reverted", outcome: str = "reverted") -> None:
    tape.opened(run, steps=0, reverts="r1")
    tape.add(run, "run.closed", {"outcome": outcome, "exit_code": 0, "reason": reason})


def test_a_difference_says_what_became_of_it_beside_how_its_step_ended() -> None:
    tape = applied()
    assert lines(diff.as_blocks(story(tape)))[1] == "in force, as far as the record goes; its step ended: kept, judged"

    reverting(tape, "r2")
    assert lines(diff.as_blocks(story(tape)))[1] == "taken back by run r2; its step ended: kept, judged"
    assert diff.as_json(story(tape))["edits"][0]["state"] == "taken_back"

    assert lines(diff.as_blocks(story(tape, "r2")))[0].endswith("what it was to take back: changectl diff r1")
    assert (
        lines(diff.as_blocks(story(applied("reverted"))))[1]
        == "taken back in the same run; its step ended: reverted, judged"
    )


def test_a_revert_that_did_nothing_is_not_named_as_the_one_that_took_it_back() -> None:
    tape = applied()
    reverting(tape, "r2")
    reverting(tape, "r3", "nothing_to_do")
    rows = lines(history.as_blocks(runs(tape.events)))

    assert rows[0].split(" | ")[4] == "kept, judged, later reverted by r2"
    assert shown(tape)[1] == "kept, later reverted by r2 (exit code 0)"
    assert shown(tape, "r3")[1].startswith("reverted: there was nothing to do")


@pytest.mark.parametrize("outcome", ["revert_failed", "revert_unverified"])
def test_a_run_that_ended_with_exit_code_6_stays_open_work_with_the_next_command(outcome: str) -> None:
    tape = applied(outcome)
    told = lines(status.as_blocks(services(runs(tape.events)), {}))
    assert f"A PERSON IS NEEDED: run r1 ended {outcome} (exit code 6)" in told
    assert "- mend the cause, then bring the saved configuration back: changectl revert r1" in told
    found = status.as_json(services(runs(tape.events)), {})["services"][0]["needs_person"]
    assert found == [{"run": "r1", "outcome": outcome, "next": "changectl revert r1"}]

    reverting(tape, "r2")
    told = lines(status.as_blocks(services(runs(tape.events)), {}))
    assert not any("A PERSON" in line for line in told)
    assert shown(tape)[1] == f"{outcome}; reverted by r2 (exit code 0)"


def test_a_revert_that_could_not_be_proven_names_the_run_to_revert_again() -> None:
    tape = applied()
    reverting(tape, "r2", "needs_person", "revert_unverified")
    told = lines(status.as_blocks(services(runs(tape.events)), {}))

    assert "A PERSON IS NEEDED: run r2 ended revert_unverified (exit code 6)" in told
    assert any(line.endswith(": changectl revert r1") for line in told)
    assert shown(tape)[1].startswith("kept, what r2 left of it is not known")
