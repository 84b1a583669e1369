"""What a reader is told of a change that was made in an incident."""

from __future__ import annotations

from tests.unit.core.history.history_samples import Tape
from tests.unit.reports.block_text import lines

from changectl.core.history.reading import RunStory, run_story, runs, services
from changectl.reports import ending, history, show, status

WHY = "OPS-99 chat is down"
BACK = "gpu1: the saved configuration is back and was started. It does not answer, and did not before the change"


def incident(outcome: str, text: str = "") -> Tape:
    tape = Tape()
    tape.opened("r1", incident=WHY)
    tape.add("r1", "step.started", step=1)
    tape.add("r1", "step.closed", {"outcome": outcome, "verdict": None, "reason": "x", "text": text}, step=1)
    tape.closed("r1", outcome, 0 if outcome == "kept_unjudged" else 4)
    return tape


def story(tape: Tape) -> RunStory:
    return run_story(tape.events)


def test_the_reason_of_the_incident_stands_in_the_list_of_runs_and_in_the_story() -> None:
    tape = incident("kept_unjudged")

    assert any(f"GPU idle (incident: {WHY})" in line for line in lines(history.as_blocks(runs(tape.events))))
    assert f"incident: {WHY}" in lines(show.as_blocks(story(tape)))
    assert show.as_json(story(tape))["run"]["incident"] == WHY


def test_a_run_outside_of_an_incident_says_nothing_of_one() -> None:
    tape = Tape()
    tape.whole("r1")

    assert "incident" not in "\n".join(lines(show.as_blocks(story(tape))))
    assert show.as_json(story(tape))["run"]["incident"] is None


def test_status_says_until_when_it_is_listed_and_how_to_take_it_back() -> None:
    told = lines(status.as_blocks(services(runs(incident("kept_unjudged").events)), {}))

    assert "r1/1 was kept without a judgement" in told
    assert "- it stays listed until a later change is judged and kept, or it is taken back: changectl revert r1" in told


def test_the_end_of_an_incident_does_not_claim_that_a_sick_service_runs_again() -> None:
    told = lines(ending.as_blocks(story(incident("reverted", f"it was restarted\n{BACK}")), 4))

    assert told[0].startswith("reverted: the saved configuration is back, and that is proven; below stands whether")
    assert "runs again" not in told[0]
    assert any("did not before the change" in line for line in told)
