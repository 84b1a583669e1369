"""The end of a run fits on a screen: the outcome first and last, why, the figures that decided, the next command."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.core.history.history_samples import Tape
from tests.unit.reports.block_text import lines

from changectl.core.history.places import host_folders
from changectl.core.history.reading import run_story
from changectl.reports import _figures as figures
from changectl.reports import ending
from changectl.reports._flags import remarks
from changectl.reports._trial import bounds

SCREEN = 40  # lines


def row(metric: str, state: str, **more: Any) -> dict[str, Any]:
    figures = {"unit": "s", "level": "low", "before": 0.1, "after": 0.2, "change": 1.0, "limit": "less than 1.5 times"}
    return {"metric": metric, "state": state, "note": "", "gap": False, **figures, **more}


def tape_of(outcome: str, rows: list[dict[str, Any]], exit_code: int = 0, **closing: Any) -> Tape:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "step.started", step=1)
    checks = [{"name": f"check{number}", "level": "required", "state": "passed"} for number in range(19)]
    checks.append({"name": "safeguards", "level": "advice", "state": "failed", "detail": "nothing restarts it"})
    tape.add("r1", "precheck", {"host": "gpu1", "results": checks}, step=1)
    tape.add("r1", "ready.outcome", {"host": "gpu1", "ok": True, "seconds": 4.0, "log": "a long\nlog\n" * 30}, step=1)
    reasons = [{"code": "why", "text": "this is why"}]
    verdict = closing.get("verdict")
    if verdict:
        tape.add("r1", "verdict", {"host": "gpu1", "verdict": verdict, "reasons": reasons, "rows": rows}, step=1)
    tape.add("r1", "step.closed", {"outcome": outcome, "outage_seconds": 3.2, "reason": outcome, **closing}, step=1)
    tape.closed("r1", outcome, exit_code)
    return tape


def told(tape: Tape, exit_code: int = 0, *, once: bool = False) -> list[str]:
    runs = {event.run for event in tape.events}
    story = run_story([one for one in tape.events if one.run == max(runs)])
    return lines(ending.as_blocks(story, exit_code, host_folders(tape.events), once=once))


def saved(tape: Tape, host: str, *, step: int = 1, state_dir: str | None = "/srv/state") -> None:
    folder = {"host": host, "folder": f"r1.{step}"}
    tape.add("r1", "lease.intent", {**folder, "seconds": 300.0}, step=step)
    tape.add("r1", "capture.outcome", {**folder, "ok": True, "state_dir": state_dir}, step=step)
    tape.add("r1", "lease.intent", {**folder, "seconds": 300.0}, step=step)
    tape.add("r1", "arm.outcome", {**folder, "armed": True, "ok": True}, step=step)


BY_HAND = "python3 /srv/state/runs/r1.1/program.pyz restore --restart"


def test_where_a_person_is_needed_the_real_folder_is_named_and_the_armed_dead_man() -> None:
    tape = Tape()
    tape.opened("r1")
    saved(tape, "gpu1")
    tape.add("r1", "step.closed", {"outcome": "revert_failed", "reason": "x", "text": "gpu1: no"}, step=1)
    tape.closed("r1", "revert_failed", 6)

    text = told(tape, 6)
    assert text[-1] == f"or by hand, on gpu1: {BY_HAND}"
    assert text[-2].startswith("the dead-man on gpu1 is still armed: when the lease is over (5m after")


def test_a_host_whose_dead_man_was_disarmed_is_not_called_armed() -> None:
    tape = Tape()
    tape.opened("r1")
    saved(tape, "gpu1")
    saved(tape, "gpu2")
    disarmed = {"host": "gpu1", "folder": "r1.1", "decision": "reverted", "ok": True}
    tape.add("r1", "disarm.outcome", disarmed, step=1)
    tape.add("r1", "step.closed", {"outcome": "revert_failed", "reason": "x", "text": "gpu2: no"}, step=1)
    tape.closed("r1", "revert_failed", 6)

    assert [line for line in told(tape, 6) if "gpu1" in line] == []
    assert f"or by hand, on gpu2: {BY_HAND}" in told(tape, 6)


def test_an_older_record_that_does_not_tell_the_state_folder_names_no_wrong_one() -> None:
    tape = Tape()
    tape.opened("r1")
    saved(tape, "gpu1", state_dir=None)
    tape.add("r1", "step.closed", {"outcome": "revert_failed", "reason": "x", "text": "gpu1: no"}, step=1)
    tape.closed("r1", "revert_failed", 6)

    assert not any("/var/lib" in line or "python3" in line for line in told(tape, 6))
    assert told(tape, 6)[-1].endswith("in the folder runs/r1.1 of its state folder")


def test_a_revert_that_failed_names_the_folder_that_the_run_before_filled() -> None:
    tape = Tape()
    tape.opened("r1")
    saved(tape, "gpu1")
    tape.add("r1", "disarm.outcome", {"host": "gpu1", "folder": "r1.1", "decision": "kept", "ok": True}, step=1)
    tape.step("r1", "kept", "improved")
    tape.closed("r1", "kept", 0)
    tape.opened("r2", steps=0, reverts="r1")
    tape.add("r2", "arm.outcome", {"host": "gpu1", "folder": "r1.1", "armed": True, "ok": True})
    tape.add("r2", "revert.outcome", {"outcome": "revert_failed", "text": "gpu1: no"})
    tape.closed("r2", "revert_failed", 6)

    assert told(tape, 6)[-1] == f"or by hand, on gpu1: {BY_HAND}"
    assert "the dead-man on gpu1 is still armed" in told(tape, 6)[-2]


def test_in_sight_of_the_end_the_outcome_is_said_once() -> None:
    tape = tape_of("kept", [row("tpot_p50", "within")], verdict="no_gross_harm")
    outcome = told(tape)[0]

    assert told(tape).count(outcome) == 2
    assert told(tape, once=True).count(outcome) == 1


def test_a_revert_that_had_nothing_to_do_says_so_in_one_line() -> None:
    tape = Tape()
    tape.opened("r2", steps=0, reverts="r1")
    tape.add("r2", "revert.outcome", {"outcome": "reverted", "text": "the saved configuration is in place already"})
    tape.add("r2", "run.closed", {"outcome": "reverted", "exit_code": 0, "reason": "nothing_to_do"})

    assert sum("in place already" in line for line in told(tape)) == 1


def test_the_outcome_stands_first_and_last_with_the_next_commands() -> None:
    text = told(tape_of("kept", [row("tpot_p50", "within")], verdict="no_gross_harm"))

    assert text[0] == "kept: the change is in force (run r1, exit code 0)"
    assert text[-3:] == [text[0], "the whole story: changectl show r1", "take it back: changectl revert r1"]


def test_a_run_with_many_figures_fits_on_a_screen_the_worst_first() -> None:
    rows = [row(f"within{number}", "within") for number in range(60)]
    rows += [row("unseen", "no data", note="nothing was measured"), row("slow_p50", "breach")]

    text = told(tape_of("reverted", rows, verdict="regressed"), 4)

    assert len(text) <= SCREEN
    figures = [line for line in text if " | " in line]
    assert figures[0] == "slow_p50 at low | 100ms | 200ms | +100% | beyond the limit (less than 1.5 times)"
    assert figures[1].endswith("no data (less than 1.5 times): nothing was measured")
    assert figures[2].endswith(" | within the limit")
    assert "and 50 more figures, in the whole story" in text


def test_what_nobody_limited_and_nothing_followed_from_comes_last() -> None:
    rows = [row("ttft_user_p99", "not measurable"), row("b", "clear"), row("tpot_p95", "not measurable", gap=True)]

    text = told(tape_of("kept", rows, verdict="unchanged"))

    assert [line.split()[0] for line in text if " at low | " in line] == ["tpot_p95", "b", "ttft_user_p99"]


def test_passed_checks_are_counted_and_the_others_named() -> None:
    text = told(tape_of("kept", [], verdict="no_gross_harm"))

    assert "checks: 19 pre-checks passed" in text
    assert "advice pre-check safeguards on gpu1 failed: nothing restarts it" in text
    assert not any("check7" in line or "a long" in line for line in text)
    assert "outage: 3.2s" in text


def test_a_run_that_was_refused_says_why_and_where_to_look() -> None:
    text = told(tape_of("refused", [], text="gpu1: disk_space: full\ngpu1: healthy_now: no answer"), 3)

    assert text[0] == "refused: nothing was changed (run r1, exit code 3)"
    assert "- gpu1: disk_space: full" in text
    assert "- gpu1: healthy_now: no answer" in text
    assert text[-1] == "look again: changectl plan changeplans/more.yml"


@pytest.mark.parametrize("outcome", ["revert_unverified", "revert_failed"])
def test_a_person_who_is_needed_is_called_and_told_what_failed(outcome: str) -> None:
    text = told(tape_of(outcome, [], verdict="regressed", text="slower\ngpu1: /etc/x differs"), 6)

    assert text[0].startswith(f"{outcome}: A PERSON IS NEEDED: ")
    assert "- gpu1: /etc/x differs" in text
    assert "once the cause is mended: changectl revert r1" in text
    assert "or accept what is there: changectl revert r1 --accept-present --reason TEXT" in text
    assert not any("docs/" in line for line in text)  # an installed changectl has no such folder


def test_a_run_that_had_nothing_to_do_offers_nothing_to_take_back() -> None:
    text = told(tape_of("kept", [], reason="nothing_to_do", text="the configuration already says so"))

    assert text[0] == ("kept: nothing had to be done: the configuration already says so (run r1, exit code 0)")
    assert not any("in force" in line for line in text)
    assert text[-1] == "the whole story: changectl show r1"


def test_a_revert_tells_what_it_took_back_and_what_its_proof_missed() -> None:
    tape = Tape()
    tape.opened("r2", steps=0, reverts="r1")
    tape.add("r2", "verify.outcome", {"host": "gpu1", "verified": False, "missing": ["/etc/x differs"]})
    tape.add("r2", "revert.outcome", {"outcome": "revert_unverified", "text": "restored, but not proven"})
    tape.closed("r2", "revert_unverified", 6)

    text = told(tape, 6)

    assert "(revert of run r1, exit code 6)" in text[0]
    assert "restored, but not proven" in text
    assert "gpu1: /etc/x differs" in text


def test_a_revert_that_found_everything_in_place_does_not_say_that_it_brought_it_back() -> None:
    tape = Tape()
    tape.opened("r2", steps=0, reverts="r1")
    tape.add("r2", "revert.outcome", {"outcome": "reverted", "text": "the saved configuration is in place already"})
    tape.add("r2", "run.closed", {"outcome": "reverted", "exit_code": 0, "reason": "nothing_to_do"})

    assert told(tape)[0].startswith("reverted: nothing had to be done")


def test_the_reasons_are_told_once_and_from_the_figures() -> None:
    breach = row("ttft_user_p50", "breach", limit="less than 1.5 times, or up to 5ms more")
    terse = "ttft_user_p50 at low: 100ms -> 200ms (+100%), less than 1.5 times, or up to 5ms more, breach"
    tape = tape_of("revert_failed", [breach], 6, verdict="regressed", text=f"{terse}\ngpu1: the disk is gone")
    for place, event in enumerate(tape.events):
        if event.kind == "verdict":
            reasons = [{"code": "limit_breached", "text": terse}]
            tape.events[place] = dataclasses.replace(event, body={**event.body, "reasons": reasons})

    reasons = [line for line in told(tape, 6) if line.startswith("- ")]
    worded = "below 1.5 times the old value, or at most 5ms above it"
    assert reasons == [
        f"- ttft_user_p50 at low: 100ms -> 200ms (+100%), beyond the limit ({worded})",
        "- gpu1: the disk is gone",
    ]


def test_figures_within_their_limits_are_counted_as_they_are_shown() -> None:
    rows = [row("a", "within"), row("kv_capacity", "within"), row("b", "no data"), row("gain", "not judged")]
    tape = tape_of("kept", rows, verdict="no_gross_harm")
    for place, event in enumerate(tape.events):
        if event.kind == "verdict":
            reasons = [{"code": "no_gross_harm", "text": "1 figures are within their limits"}]
            tape.events[place] = dataclasses.replace(event, body={**event.body, "reasons": reasons})

    assert "- 2 figures are within their limits; 1 could not be judged" in told(tape)


@pytest.mark.parametrize(
    ("recorded", "read"),
    [
        (
            "less than 5 points more, or p at least 0.01",
            "under 5 points more, or no more than chance explains: p of 0.01 or above",
        ),
        ("less than 1.5 times lower", "not 1.5 times lower than before"),
        ("accept tpot <= 150ms", "tpot <= 150ms, accepted by the plan"),
        ("slo tpot_p95 <= 45ms", "tpot_p95 <= 45ms, the service's limit"),
        ("expected -50%", "expected -50%"),
        ("", ""),
    ],
)
def test_a_recorded_limit_is_told_as_a_person_would(recorded: str, read: str) -> None:
    assert figures.limit(recorded) == read


def test_steps_that_were_not_begun_are_left_out() -> None:
    tape = Tape()
    tape.opened("r1", steps=2)
    tape.step("r1", "reverted", "regressed")
    tape.closed("r1", "reverted", 4)

    assert not any(line.startswith("step 2") for line in told(tape, 4))


def test_what_is_accepted_is_said_once() -> None:
    tape = Tape()
    change = {"kind": "parameter", "name": "x", "to": "2"}
    tape.add("r1", "run.opened", {"steps": [{"change": change, "expect": "neutral", "accept": ["accept tpot <= 1s"]}]})
    tape.step("r1", "kept", "no_gross_harm")

    assert "accepted: tpot <= 1s" in told(tape)


def test_a_start_that_failed_shows_the_end_of_its_log() -> None:
    tape = tape_of("reverted", [], 4, text="gpu1: the new configuration did not become ready: it ends by itself")
    log = "\n".join([*(f"line {number}" for number in range(40)), "", "ValueError: semaphore initial value"])
    body = {"host": "gpu1", "ok": False, "message": "it ends by itself", "log": log}
    tape.events.insert(3, dataclasses.replace(tape.events[4], kind="ready.outcome", body=body))

    text = told(tape, 4)
    at = text.index("the last lines of the log on gpu1:")
    assert text[at + 1 : at + 6] == [
        "  line 36",
        "  line 37",
        "  line 38",
        "  line 39",
        "  ValueError: semaphore initial value",
    ]
    assert not any("line 35" in line for line in text)


def test_a_start_whose_cause_is_known_needs_no_log() -> None:
    tape = tape_of("reverted", [], 4, text="gpu1: out of memory")
    body = {"host": "gpu1", "ok": False, "line": "out of memory", "log": "a\nout of memory"}
    tape.events.insert(3, dataclasses.replace(tape.events[4], kind="ready.outcome", body=body))

    assert not any("the last lines of the log" in line for line in told(tape, 4))


def test_a_remark_of_every_level_is_one_line_and_says_whether_it_matters() -> None:
    places = [("low", "before the change"), ("busy", "before the change"), ("low", "after the change")]
    flags = [{"code": "cache_unknown", "text": f"the server did not say at {a} {b} what was cached"} for a, b in places]
    flags += [{"code": "generator_late", "text": f"the load generator was busy at {a} {b}"} for a, b in places]
    flags += [{"code": "failures_above_1_percent", "text": "2% of the requests failed at low"}]

    assert remarks(flags) == [
        "the server did not say what was cached (at low, busy before the change; at low after the change); "
        "this does not change the verdict",
        "the load generator was busy (at low, busy before the change; at low after the change), so that answers "
        "may have been noticed a little late; this does not change the verdict. A caller host with more free "
        "processors helps",
        "2% of the requests failed at low",
    ]


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (
            "ttft_user_p50 at busy: 427ms -> 3.642s (+753%), less than 1.5 times, or up to 5ms more, breach",
            "ttft_user_p50 at busy: 427ms -> 3.642s (+753%), beyond the limit "
            "(below 1.5 times the old value, or at most 5ms above it)",
        ),
        (
            "not kept (regressed): tpot at low: 1ms -> 2s, slo tpot_p95 <= 45ms, breach; rps at low: 2 -> 1, "
            "less than 1.5 times lower, breach",
            "not kept (regressed): tpot at low: 1ms -> 2s, beyond the limit (tpot_p95 <= 45ms, the service's limit); "
            "rps at low: 2 -> 1, beyond the limit (not 1.5 times lower than before)",
        ),
        ("gpu1: answers after 3.0 s", "gpu1: answers after 3.0 s"),
    ],
)
def test_a_breach_is_told_while_it_goes_on_in_the_words_of_the_final_screen(judged: str, said: str) -> None:
    assert figures.spoken(judged) == said


def trial_tape(verdict: str = "inconclusive", more_pairs: int | None = 2, looks: tuple[int, ...] = (1, 2)) -> Tape:
    """A trial of two pairs that was taken back."""
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "step.started", step=1)
    for number, letter in enumerate("ABBA", 1):
        tape.add("r1", "ready.outcome", {"host": "gpu1", "ok": True, "started": True, "seconds": 4.0}, step=1)
        tape.add("r1", "measure.outcome", {"host": "gpu1", "ok": True, "phase": letter, "number": number}, step=1)
    body = {"host": "gpu1", "verdict": verdict, "reasons": [], "rows": [], "decision": "policy",
            "more_pairs": more_pairs, "looks": list(looks)}  # fmt: skip
    tape.add("r1", "verdict", body, step=1)
    tape.add("r1", "step.closed", {"outcome": "reverted", "reason": verdict, "verdict": verdict}, step=1)
    tape.closed("r1", "reverted", 5)
    return tape


def test_a_trial_without_a_verdict_ends_with_the_command_that_goes_on_with_it() -> None:
    text = "\n".join(told(trial_tape(), 5))
    assert "changectl extend r1" in text
    assert "2 more pairs" in text
    assert "4 phases, 4 starts" in text


@pytest.mark.parametrize(
    "tape", [trial_tape("regressed"), trial_tape(more_pairs=None), trial_tape(more_pairs=7), trial_tape(looks=())]
)
def test_where_nothing_can_go_on_no_such_command_is_told(tape: Tape) -> None:
    assert not any("extend" in line for line in told(tape, 5))


@pytest.mark.parametrize(
    ("metric", "low", "high", "words"),
    [
        ("ttft_user_p50", -0.012, 0.03, "at most 3% slower, at best 1.2% faster"),
        ("tpot_p95", 0.05, 0.2, "between 5% and 20% slower"),
        ("e2e_user_p50", -0.2, -0.1, "between 10% and 20% faster"),
        ("rps_ok", -0.03, 0.01, "at most 3% lower, at best 1% higher"),
        ("rps_ok", 0.1, 0.3, "between 10% and 30% higher"),
        ("failures", -0.001, 0.004, "at most 0.4 points more, at best 0.1 points less"),
        ("failures", None, 0.004, ""),
        ("nothing", 0.1, 0.2, ""),
    ],
)
def test_bounds_are_told_in_plain_words(metric: str, low: float | None, high: float, words: str) -> None:
    unit = "share" if metric == "failures" else "s"
    assert bounds({"metric": metric, "unit": unit, "low": low, "high": high}) == words
