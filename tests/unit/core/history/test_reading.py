from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.history.history_samples import DIFF, START, Tape

from changectl.core.errors import InputError
from changectl.core.history import reading as history
from changectl.core.history.reading import (
    EditEnd,
    Filters,
    choose,
    edit_end,
    moment,
    open_work,
    resolve_run,
    run_story,
    runs,
    services,
    split_run,
)
from changectl.core.ports import Event

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def test_a_run_is_told_from_its_events() -> None:
    tape = Tape()
    tape.whole("r1")
    (run,) = runs(tape.events)

    assert (run.run, run.service, run.outcome, run.exit_code) == ("r1", "chat", "kept", 0)
    assert (run.actor, run.reason, run.ticket, run.hosts) == ("ann@gateway", "GPU idle", "OPS-1", ("gpu1",))
    (step,) = run.steps
    assert str(step.change) == "parameter max-num-seqs: 64 -> 128"
    assert (step.outcome, step.verdict, step.reason) == ("kept", "improved", "judged")
    assert run.outage_seconds == 12.5
    assert not step.failures_flagged


def test_a_run_without_an_end_is_open() -> None:
    tape = Tape()
    tape.opened("r1", steps=2)
    tape.step("r1", "kept", "improved")
    tape.add("r1", "step.started", step=2)
    (run,) = runs(tape.events)

    assert (run.outcome, run.closed_at, run.exit_code) == (history.OPEN, None, None)
    assert [step.outcome for step in run.steps] == ["kept", history.OPEN]


def test_a_step_that_a_closed_run_never_reached_was_not_started() -> None:
    tape = Tape()
    tape.opened("r1", steps=2)
    tape.step("r1", "reverted", "regressed")
    tape.closed("r1", "reverted", 4)
    (run,) = runs(tape.events)

    assert [step.outcome for step in run.steps] == ["reverted", "not_started"]
    assert run.outage_seconds == 12.5


def test_an_unknown_outage_is_not_zero() -> None:
    tape = Tape()
    tape.opened("r1")
    tape.step("r1", "kept", "improved", outage=None)
    assert runs(tape.events)[0].outage_seconds is None


def test_a_reverted_run_names_the_run_that_took_it_back() -> None:
    tape = Tape()
    tape.whole("r1")
    tape.whole("r2", "reverted", None, reverts="r1")
    first, second = runs(tape.events)

    assert (first.reverted_by, second.reverts) == ("r2", "r1")


def taken_back(tape: Tape, run: str, reverts: str, outcome: str = "reverted", reason: str = "reverted") -> None:
    tape.opened(run, steps=0, reverts=reverts)
    tape.add(run, "run.closed", {"outcome": outcome, "exit_code": 0, "reason": reason})


def test_a_revert_that_found_nothing_to_do_is_not_the_one_that_took_it_back() -> None:
    tape = Tape()
    tape.whole("r1")
    taken_back(tape, "r2", "r1")
    taken_back(tape, "r3", "r1", reason="nothing_to_do")
    first, _, third = runs(tape.events)

    assert (first.reverted_by, first.found_back_by, third.did_nothing) == ("r2", None, True)


def test_a_change_that_was_found_taken_back_is_in_force_no_more_though_no_run_took_it_back() -> None:
    tape = Tape()
    tape.whole("r1")
    taken_back(tape, "r2", "r1", reason="nothing_to_do")
    (chat,) = services(runs(tape.events))

    assert (runs(tape.events)[0].reverted_by, runs(tape.events)[0].found_back_by) == (None, "r2")
    assert chat.standing is None


@pytest.mark.parametrize("outcome", ["revert_failed", "revert_unverified"])
def test_a_run_whose_way_back_was_not_proven_is_open_work_until_a_later_run_settles_it(outcome: str) -> None:
    tape = Tape()
    tape.opened("r1")
    tape.step("r1", outcome, "regressed")
    tape.closed("r1", outcome, 6)
    assert [run.run for run in open_work(tape.events)] == ["r1"]
    assert [run.to_revert for run in services(runs(tape.events))[0].needs_person] == ["r1"]

    taken_back(tape, "r2", "r1", outcome="refused")
    assert [run.run for run in open_work(tape.events)] == ["r1"]

    taken_back(tape, "r3", "r1")
    assert open_work(tape.events) == []
    assert runs(tape.events)[0].settled_by == "r3"


def test_a_revert_whose_proof_failed_names_the_run_that_has_to_be_reverted_again() -> None:
    tape = Tape()
    tape.whole("r1")
    taken_back(tape, "r2", "r1", outcome="revert_unverified", reason="needs_person")
    (open_run,) = open_work(tape.events)
    assert (open_run.run, open_run.to_revert, runs(tape.events)[0].doubted_by) == ("r2", "r1", "r2")

    taken_back(tape, "r3", "r1")
    assert (open_work(tape.events), runs(tape.events)[0].doubted_by) == ([], None)


def test_a_revert_that_fails_after_an_earlier_one_succeeded_is_not_settled_by_that() -> None:
    tape = Tape()
    tape.whole("r1")
    taken_back(tape, "r2", "r1")
    taken_back(tape, "r3", "r1", outcome="revert_failed", reason="needs_person")

    assert [run.run for run in open_work(tape.events)] == ["r3"]


def test_a_run_that_was_cut_off_is_open_work_too() -> None:
    tape = Tape()
    cut_off(tape, "r1")
    assert [(run.run, run.needs_person) for run in open_work(tape.events)] == [("r1", False)]


def test_a_revert_that_failed_takes_nothing_back() -> None:
    tape = Tape()
    tape.whole("r1")
    tape.whole("r2", "revert_failed", None, reverts="r1")
    assert runs(tape.events)[0].reverted_by is None


@pytest.mark.parametrize(
    ("verdict", "flagged"),
    [
        ({"flags": [{"code": "failures_above_1_percent", "text": "2 % failed"}]}, True),
        ({"rows": [{"metric": "failures", "before": 0.0, "after": 0.011}]}, True),
        ({"rows": [{"metric": "failures", "before": 0.02, "after": None}]}, True),
        ({"rows": [{"metric": "failures", "before": 0.01, "after": 0.01}]}, False),
        ({"rows": [{"metric": "rps_ok", "before": 4, "after": 5}]}, False),
        ({}, False),
    ],
)
def test_more_than_one_percent_of_failures_is_flagged(verdict: dict[str, object], flagged: bool) -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "verdict", verdict, step=1)
    assert runs(tape.events)[0].steps[0].failures_flagged is flagged


def test_the_story_has_the_diff_the_figures_and_the_reasons() -> None:
    tape = Tape()
    tape.whole("r1")
    story = run_story(tape.events)
    (step,) = story.steps

    assert story.edits == [(1, step.edits[0])]
    assert step.edits[0]["diff"] == DIFF
    assert [row["metric"] for row in step.rows] == ["rps_ok", "e2e_user_p95"]
    assert step.reasons[0]["text"] == "it is faster"
    assert step.prechecks[0]["figure"] == "3 GB needed, 40 GB free"
    assert story.plan_text == "version: 1\n"


def test_intent_and_outcome_are_one_entry_with_its_duration() -> None:
    tape = Tape()
    tape.whole("r1")
    (restart,) = [entry for entry in run_story(tape.events).timeline if entry.action == "restart"]

    assert (restart.state, restart.duration_seconds, restart.host, restart.offset_seconds) == ("done", 1.0, "gpu1", 5.0)


def test_what_was_not_armed_is_not_told_as_done() -> None:
    tape = Tape()
    tape.whole("r1")
    (arm,) = [entry for entry in run_story(tape.events).timeline if entry.action == "arm"]

    assert (arm.state, arm.detail) == ("noted", "not armed: not built yet")


def test_an_intent_without_an_outcome_is_unfinished() -> None:
    tape = Tape()
    tape.opened("r1")
    tape.add("r1", "write.intent", {"host": "gpu1", "path": "/etc/x"}, step=1)
    entry = run_story(tape.events).timeline[-1]

    assert (entry.action, entry.state, entry.duration_seconds, entry.detail) == ("write", "unfinished", None, "/etc/x")


def test_actions_on_two_hosts_and_repeated_actions_keep_their_own_outcomes() -> None:
    tape = Tape()
    tape.opened("r1")
    for host in ("a", "b"):
        tape.add("r1", "write.intent", {"host": host}, step=1)
    tape.add("r1", "write.outcome", {"host": "b", "ok": False, "message": "no room"}, step=1)
    tape.add("r1", "write.outcome", {"host": "a", "ok": True}, step=1)
    tape.add("r1", "write.intent", {"host": "a"}, step=1)
    entries = [entry for entry in run_story(tape.events).timeline if entry.action == "write"]

    assert [(entry.host, entry.state) for entry in entries] == [("a", "done"), ("b", "failed"), ("a", "unfinished")]
    assert entries[1].detail == "no room"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = [
    "steps",
    "change",
    "verdict",
    "rows",
    "flags",
    "reasons",
    "results",
    "outcome",
    "exit_code",
    "hosts",
    "ok",
    "host",
]
KINDS = [
    "run.opened",
    "run.closed",
    "step.closed",
    "verdict",
    "precheck",
    "edit",
    "write.intent",
    "write.outcome",
    "odd",
]


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)), min_size=1)
)
def test_whatever_stands_in_bodies_there_is_a_story(events: list[tuple[str, dict[str, object]]]) -> None:
    tape = Tape()
    for kind, body in events:
        tape.add("r1", kind, body, step=0 if kind.startswith("run") else 1)

    assert run_story(tape.events).run.run == "r1"
    assert len(services(runs(tape.events))) == 1


def test_a_run_without_events_has_no_story() -> None:
    with pytest.raises(ValueError):
        run_story([])


def several() -> list[Event]:
    tape = Tape()
    tape.whole("r1")
    tape.whole("r2", "reverted", "regressed", service="search", hosts=["gpu2"], actor="bob@laptop")
    tape.whole("r3", "kept_unjudged", None)
    tape.opened("r4", service="search")
    return tape.events


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["r4", "r3", "r2", "r1"]),
        (Filters(limit=2), ["r4", "r3"]),
        (Filters(limit=0), []),
        (Filters(service="search"), ["r4", "r2"]),
        (Filters(host="gpu2"), ["r2"]),
        (Filters(outcome="reverted"), ["r2"]),
        (Filters(outcome="open"), ["r4"]),
        (Filters(verdict="improved"), ["r1"]),
        (Filters(actor="bob"), ["r2"]),
        (Filters(actor="bob@laptop"), ["r2"]),
        (Filters(actor="bo"), []),
        (Filters(change="--max_num_seqs"), ["r4", "r3", "r2", "r1"]),
        (Filters(change="max-num"), []),
        (Filters(since=START + timedelta(seconds=1)), ["r4", "r3", "r2"]),
        (Filters(until=START + timedelta(seconds=1)), ["r1"]),
        (Filters(service="search", outcome="kept"), []),
    ],
)
def test_filters_narrow_and_the_newest_comes_first(filters: Filters, expected: list[str]) -> None:
    assert [run.run for run in choose(runs(several()), filters)] == expected


def test_status_tells_what_stands_what_is_open_and_what_was_never_judged() -> None:
    chat, search = services(runs(several()))

    assert (chat.service, chat.last.run, chat.open_runs, chat.kept_unjudged) == ("chat", "r3", (), ("r3/1",))
    assert chat.standing is not None
    assert chat.standing.run == "r3"
    assert (search.last.run, search.standing, search.open_runs) == ("r4", None, ("r4",))


def test_what_was_taken_back_stands_no_more() -> None:
    tape = Tape()
    tape.whole("r1")
    tape.whole("r2", "kept_unjudged", None)
    tape.whole("r3", "reverted", None, reverts="r2")
    (chat,) = services(runs(tape.events))

    assert chat.standing is not None
    assert (chat.standing.run, chat.kept_unjudged) == ("r1", ())


def cut_off(tape: Tape, run: str, **more: object) -> None:
    tape.opened(run, **more)
    tape.add(run, "write.intent", {"host": "gpu1"}, step=1)


@pytest.mark.parametrize(("outcome", "left_open"), [("reverted", ()), ("kept_unjudged", ()), ("refused", ("r1",)),
                                                    ("revert_failed", ("r1",)), ("aborted", ("r1",))])  # fmt: skip
def test_a_run_that_was_cut_off_is_settled_by_a_revert_that_came_to_its_end(
    outcome: str, left_open: tuple[str, ...]
) -> None:
    tape = Tape()
    cut_off(tape, "r1")
    tape.opened("r2", steps=0, reverts="r1")
    tape.closed("r2", outcome, 0)
    (chat,) = services(runs(tape.events))

    assert chat.open_runs == left_open
    assert runs(tape.events)[0].settled_by == (None if left_open else "r2")


def test_a_revert_that_was_cut_off_is_settled_by_the_next_one() -> None:
    tape = Tape()
    cut_off(tape, "r1")
    cut_off(tape, "r2", steps=0, reverts="r1")
    tape.opened("r3", steps=0, reverts="r1")
    tape.closed("r3", "reverted", 0)
    (chat,) = services(runs(tape.events))

    assert chat.open_runs == ()


def test_what_was_accepted_as_it_was_found_stays_listed_as_not_judged() -> None:
    tape = Tape()
    cut_off(tape, "r1")
    tape.opened("r2", steps=0, reverts="r1")
    tape.closed("r2", "kept_unjudged", 0)
    (chat,) = services(runs(tape.events))

    assert (chat.standing, chat.kept_unjudged) == (None, ("r2",))


def test_what_was_kept_unjudged_is_listed_until_a_later_run_was_judged_and_kept() -> None:
    tape = Tape()
    tape.whole("r1", "kept_unjudged", None)
    tape.whole("r2", "kept", None)  # nobody judged that one either
    assert services(runs(tape.events))[0].kept_unjudged == ("r1/1",)
    tape.whole("r3", "reverted", "regressed")
    assert services(runs(tape.events))[0].kept_unjudged == ("r1/1",)
    tape.whole("r4", "kept", "no_gross_harm")
    assert services(runs(tape.events))[0].kept_unjudged == ()


def test_what_was_kept_unjudged_is_listed_again_when_the_judged_run_is_taken_back() -> None:
    tape = Tape()
    tape.whole("r1", "kept_unjudged", None)
    tape.whole("r2", "kept", "no_gross_harm")
    tape.whole("r3", "reverted", None, reverts="r2")
    tape.whole("r4", "kept_unjudged", None)
    assert services(runs(tape.events))[0].kept_unjudged == ("r1/1", "r4/1")


def test_the_reason_of_an_incident_is_kept_beside_the_plans_own() -> None:
    tape = Tape()
    tape.whole("r1", "kept_unjudged", None, incident="OPS-99 chat is down")
    tape.whole("r2")
    mended, usual = runs(tape.events)
    assert (mended.incident, mended.reason, usual.incident) == ("OPS-99 chat is down", "GPU idle", "")


def test_a_run_that_had_nothing_to_do_is_not_why_something_is_in_force() -> None:
    tape = Tape()
    tape.whole("r1")
    tape.opened("r2")
    tape.add("r2", "step.closed", {"outcome": "kept", "reason": "nothing_to_do"}, step=1)
    tape.closed("r2", "kept", 0)
    assert [one.standing and one.standing.run for one in services(runs(tape.events))] == ["r1"]

    tape.opened("r3", steps=0, reverts="r1")
    tape.closed("r3", "reverted", 0)
    assert [one.standing for one in services(runs(tape.events))] == [None]


def test_a_run_is_found_by_its_beginning() -> None:
    known = ["20261130-aa11", "20261130-ab22", "20261201-cc33"]
    assert resolve_run("20261201", known) == "20261201-cc33"
    assert resolve_run("20261130-aa11", known) == "20261130-aa11"
    assert resolve_run("r1", ["r1", "r10"]) == "r1"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("20261130", "20261130-aa11, 20261130-ab22"),
        ("20261130-aa12", "20261130-aa11"),
        ("zzz", "20261130-ab22"),
        ("", "the nearest"),
    ],
)
def test_an_unclear_run_names_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_run(text, ["20261130-aa11", "20261130-ab22"])
    assert hint in str(caught.value)


def test_no_run_is_found_in_an_empty_history() -> None:
    with pytest.raises(InputError, match="nothing has been recorded"):
        resolve_run("r1", [])


def test_run_and_step_are_told_apart() -> None:
    assert split_run("r1") == ("r1", None)
    assert split_run("r1/2") == ("r1", 2)
    for wrong in ("r1/0", "r1/", "r1/x", "r1/-1", "r1/²"):
        with pytest.raises(InputError, match="no step"):
            split_run(wrong)


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2026-11-30", False, datetime(2026, 11, 30, tzinfo=UTC)),
        ("2026-11-30", True, datetime(2026, 12, 1, tzinfo=UTC)),
        ("2026-11-30T08:15", True, datetime(2026, 11, 30, 8, 15, tzinfo=UTC)),
        ("2026-11-30T08:15+02:00", False, datetime(2026, 11, 30, 6, 15, tzinfo=UTC)),
        ("7d", False, NOW - timedelta(days=7)),
        ("90m", True, NOW - timedelta(minutes=90)),
    ],
)
def test_times_are_understood(text: str, end: bool, expected: datetime) -> None:
    assert moment(text, NOW, end=end) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "d", "-3d", "99999999999d", "2026-13-01"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(InputError, match="not a time"):
        moment(text, NOW)


def test_a_step_on_two_instances_shows_both_verdicts() -> None:
    tape = Tape()
    tape.opened("r1")
    for host, share in (("gpu1", 0.02), ("gpu2", 0.0)):
        rows = [{"metric": "failures", "unit": "share", "before": 0.0, "after": share}]
        tape.add("r1", "verdict", {"host": host, "verdict": "no_gross_harm", "reasons": [host], "rows": rows}, step=1)
    (step,) = run_story(tape.events).steps

    assert [(row["host"], row["after"]) for row in step.rows] == [("gpu1", 0.02), ("gpu2", 0.0)]
    assert [reason["text"] for reason in step.reasons] == ["gpu1", "gpu2"]
    assert step.summary.failures_flagged  # of the first instance, though the last one had none


@pytest.mark.parametrize(
    ("change", "summary", "text"),
    [
        ({"from": None, "to": "2"}, "parameter x: absent -> 2", "p x: absent -> 2"),
        ({"from": None, "to": "2"}, "parameter x: whatever it is -> 2", "p x: whatever it was -> 2"),
        ({"to": "2"}, "", "p x: whatever it was -> 2"),
        ({"from": "1", "to": None}, "", "p x: 1 -> absent"),
        ({"from": "", "to": "absent"}, "", 'p x: "" -> absent'),
    ],
)
def test_absent_empty_and_not_asserted_are_told_apart(change: dict[str, object], summary: str, text: str) -> None:
    tape = Tape()
    tape.opened("r1", steps=0)
    body = {"steps": [{"change": {"kind": "p", "name": "x", **change}, "summary": summary}]}
    tape.add("r1", "run.opened", body)
    assert str(runs(tape.events)[0].steps[0].change) == text


def found(tape: Tape, *values: str, name: str = "max-num-seqs") -> None:
    """A run that asserts nothing, and what its contacts found in the files, as they record it."""
    change = {"kind": "parameter", "name": "concurrency_limit", "to": "128"}
    tape.opened("r1", steps=0)
    tape.add("r1", "run.opened", {"steps": [{"change": change, "summary": "concurrency_limit: whatever it is -> 128"}]})
    for number, value in enumerate(values):
        facts = {"hello": {}, "values": {"name": name, "file": value, "process": "'9'", "engine": "'9'"}}
        tape.add("r1", "contact", {"host": f"gpu{number}", "facts": facts}, step=1)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["'64'"], "64 (as found) -> 128"),
        (["'64'", "'64'"], "64 (as found) -> 128"),
        (["'64'", "absent"], "64 or absent (as found) -> 128"),
        (["'absent'"], "absent (as found) -> 128"),
        (["''"], '"" (as found) -> 128'),
        (["not known (the file cannot be read)"], "whatever it was -> 128"),
        (["[odd"], "[odd (as found) -> 128"),
        ([], "whatever it was -> 128"),
    ],
)
def test_a_value_that_the_plan_does_not_name_is_told_as_the_hosts_had_it(values: list[str], text: str) -> None:
    tape = Tape()
    found(tape, *values)
    assert runs(tape.events)[0].steps[0].change.in_words == f"concurrency_limit: {text}"


@pytest.mark.parametrize(
    ("typed", "alike", "admitted"),
    [
        ("concurrency_limit", (), True),
        ("max_num_seqs", (), True),
        ("--max-num-seqs", (), True),
        ("parallel", ("concurrency_limit", "np"), False),  # another engine's setting of the same common name
        ("concurrency-limit", ("parallel", "max-num-seqs"), True),
    ],
)
def test_a_change_is_found_by_the_plans_name_and_by_the_engines(
    typed: str, alike: tuple[str, ...], admitted: bool
) -> None:
    tape = Tape()
    found(tape, "'64'")
    assert bool(choose(runs(tape.events), Filters(change=typed, alike=alike))) is admitted


def test_a_change_that_never_met_a_host_is_found_by_any_name_of_its_setting() -> None:
    tape = Tape()
    found(tape)
    assert choose(runs(tape.events), Filters(change="max-num-seqs", alike=("concurrency_limit",)))


def ends(tape: Tape) -> list[EditEnd]:
    story = run_story([event for event in tape.events if event.run == "r1"])
    run = runs(tape.events)[0]
    return [edit_end(run, step, edit) for step in story.steps for edit in step.edits]


def edited(outcome: str, *, written: bool = True, closed: bool = True, reason: str = "judged") -> Tape:
    tape = Tape()
    tape.opened("r1")
    edit = {"host": "gpu1", "path": "/etc/x", "before_sha": "a" * 64, "after_sha": "b" * 64, "diff": DIFF}
    tape.add("r1", "edit", edit, step=1)
    if written:
        tape.add("r1", "write.intent", {"host": "gpu1", "path": "/etc/x"}, step=1)
    if closed:
        tape.add("r1", "step.closed", {"outcome": outcome, "reason": reason}, step=1)
        tape.closed("r1", outcome, 0)
    return tape


@pytest.mark.parametrize(
    ("tape", "end"),
    [
        (edited("kept"), EditEnd("in_force")),
        (edited("kept_unjudged"), EditEnd("in_force")),
        (edited("reverted"), EditEnd("taken_back")),
        (edited("reverted", written=False), EditEnd("never_applied")),
        (edited("refused", written=False), EditEnd("never_applied")),
        (edited("refused"), EditEnd("never_applied")),  # the host would not write
        (edited("aborted", written=False), EditEnd("never_applied")),
        (edited("kept", reason="nothing_to_do"), EditEnd("nothing_to_do")),
        (edited("revert_failed"), EditEnd("not_known")),
        (edited("", closed=False), EditEnd("not_known")),
        (edited("", closed=False, written=False), EditEnd("never_applied")),
    ],
)
def test_an_edit_says_what_became_of_it(tape: Tape, end: EditEnd) -> None:
    assert ends(tape) == [end]


@pytest.mark.parametrize(
    ("outcome", "reason", "end"),
    [
        ("reverted", "reverted", EditEnd("taken_back", "r2")),
        ("reverted", "nothing_to_do", EditEnd("taken_back", "r2")),
        ("revert_failed", "needs_person", EditEnd("not_known", "r2")),
        ("refused", "changed_since", EditEnd("in_force")),
    ],
)
def test_a_kept_edit_says_which_later_run_took_it_back(outcome: str, reason: str, end: EditEnd) -> None:
    tape = edited("kept")
    taken_back(tape, "r2", "r1", outcome=outcome, reason=reason)
    assert ends(tape) == [end]


def test_a_revert_tells_its_proof_and_a_proof_that_fails_is_a_failure() -> None:
    tape = Tape()
    tape.opened("r2", steps=0, reverts="r1")
    tape.add("r2", "verify.intent", {"host": "gpu1"})
    tape.add("r2", "verify.outcome", {"host": "gpu1", "ok": True, "verified": False, "missing": ["/etc/x differs"]})
    tape.add("r2", "revert.outcome", {"outcome": "revert_unverified", "text": "restored, but not proven"})
    story = run_story(tape.events)

    assert (story.text, story.verify[0]["missing"]) == ("restored, but not proven", ["/etc/x differs"])
    assert [entry.state for entry in story.timeline if entry.action == "verify"] == ["failed"]
