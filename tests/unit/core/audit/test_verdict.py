"""What may be said of a journal: pairs of intent and outcome, closed and open runs, and what hosts know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from changectl.core.audit.chain import GENESIS, Finding, Line, event_hash
from changectl.core.audit.journal import Account
from changectl.core.audit.verdict import Audit, judge
from changectl.core.audit.witness import Head, Witnesses, read_document, read_heads
from changectl.core.errors import InputError

RUN = "20261130-081502-chat-k3f7"


class Journal:
    """Lines of one chain."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, kind: str, body: Mapping[str, Any] | None = None, *, run: str = RUN, step: int = 1) -> Line:
        prev, data = self.lines[-1].hash if self.lines else GENESIS, json.dumps(body or {}).encode()
        at = "2026-11-30T08:15:02.000000+00:00"
        digest = event_hash(prev, run, step, kind, at, data)
        self.lines.append(Line(len(self.lines) + 1, run, step, kind, at, data, prev, digest))
        return self.lines[-1]

    def opened(self, run: str = RUN, *hosts: str) -> None:
        self.add("run.opened", {"hosts": list(hosts or ("gpu1",))}, run=run, step=0)

    def closed(self, run: str = RUN) -> None:
        self.add("run.closed", {"outcome": "kept"}, run=run, step=0)

    def armed(self, host: str = "gpu1", run: str = RUN, folder: str = f"{RUN}.1") -> Head:
        intent = self.add("arm.intent", {"host": host, "folder": folder}, run=run)
        self.add("arm.outcome", {"host": host, "ok": True, "armed": True}, run=run)
        return Head(host, folder, "armed", "2026-11-30T08:15:03Z", intent.sequence, intent.hash)

    def audit(self, witnesses: Witnesses | None = None, *kept: Finding) -> Audit:
        return judge(Account.of(self.lines), kept, witnesses or Witnesses())

    def problems(self, witnesses: Witnesses | None = None) -> list[tuple[str, int]]:
        return [(finding.problem, finding.sequence) for finding in self.audit(witnesses).findings]


@pytest.fixture
def journal() -> Journal:
    journal = Journal()
    journal.opened()
    return journal


def known(*heads: Head, host: str = "gpu1", asked_at: int | None = None) -> Witnesses:
    return Witnesses({host: heads}, asked_at={} if asked_at is None else {host: asked_at})


def test_an_intent_of_a_closed_run_wants_an_outcome(journal: Journal) -> None:
    journal.add("write.intent", {"host": "gpu1"})
    journal.closed()

    assert journal.problems() == [("intent_without_outcome", 2)]
    assert journal.audit().words == ("linked", "not complete", "not witnessed")


def test_as_long_as_the_run_is_not_closed_it_is_named_and_no_finding(journal: Journal) -> None:
    journal.add("write.intent", {"host": "gpu1"})

    audit = journal.audit()

    assert (audit.findings, audit.exit_code) == ((), 0)
    (run,) = audit.open_runs
    assert [(begun.action, begun.host, begun.sequence) for begun in run.begun] == [("write", "gpu1", 2)]


@pytest.mark.parametrize("kind", ["lock.taken_over", "recover.started"])
def test_what_a_recorded_death_cut_off_is_no_finding(journal: Journal, kind: str) -> None:
    journal.add("write.intent", {"host": "gpu1"})
    journal.add(kind)
    journal.add("restart.intent", {"host": "gpu1"})
    journal.closed()

    assert journal.problems() == [("intent_without_outcome", 4)]


def test_what_begins_after_the_end_of_the_run_may_still_be_going_on(journal: Journal) -> None:
    journal.closed()
    journal.add("tidy.intent", {"host": "gpu1"})

    assert journal.problems() == []


def test_an_outcome_answers_the_intent_of_its_own_host_step_and_action(journal: Journal) -> None:
    journal.add("restart.intent", {"host": "gpu1"})
    journal.add("restart.intent", {"host": "gpu2"})
    journal.add("restart.intent", {"host": "gpu2"}, step=2)
    journal.add("restart.outcome", {"host": "gpu2"})
    journal.closed()

    assert journal.problems() == [("intent_without_outcome", 2), ("intent_without_outcome", 4)]


def test_a_failure_that_names_no_host_answers_the_latest(journal: Journal) -> None:
    journal.add("restart.intent", {"host": "gpu1"})
    journal.add("restart.intent", {"host": "gpu1"})
    journal.add("restart.outcome", {"ok": False, "reason": "contact_lost"})
    journal.closed()

    assert journal.problems() == [("intent_without_outcome", 2)]


def test_a_write_that_no_event_announced_is_a_finding_and_a_fact_that_was_found_is_none(journal: Journal) -> None:
    journal.add("ready.outcome", {"host": "gpu1", "ok": True})
    journal.add("write.outcome", {"host": "gpu1", "ok": True})

    assert journal.problems() == [("outcome_without_intent", 3)]


def test_a_head_in_the_chain_vouches_for_all_before_it(journal: Journal) -> None:
    head = journal.armed()
    audit = journal.audit(known(head))

    assert audit.words == ("linked", "complete", f"witnessed up to event {head.sequence}")
    assert audit.exit_code == 0


def test_a_head_vouches_for_nothing_behind_a_break(journal: Journal) -> None:
    first = journal.armed()
    journal.closed()
    journal.opened("r2")
    second = journal.armed(run="r2", folder="r2.1")
    del journal.lines[4]

    assert journal.audit(known(first, second)).words[2] == f"witnessed up to event {first.sequence}"


def test_a_run_that_says_armed_and_a_host_that_knows_nothing_of_it_do_not_agree(journal: Journal) -> None:
    journal.armed()

    assert journal.problems(known(asked_at=3)) == [("not_witnessed", 3)]
    assert journal.problems(known(asked_at=2)) == []  # it was asked before
    assert journal.problems(known()) == []  # nobody knows when it was asked


def test_what_a_host_forgot_long_ago_is_not_expected_of_it(journal: Journal) -> None:
    journal.armed()
    journal.opened("r2")
    newer = journal.armed(run="r2", folder="r2.1")

    assert journal.problems(known(newer, asked_at=6)) == []


def test_a_revert_arms_the_folder_of_the_run_that_it_takes_back(journal: Journal) -> None:
    journal.armed()
    journal.opened("r2")
    head = journal.armed(run="r2", folder=f"{RUN}.1")

    assert journal.problems(known(head, asked_at=6)) == []


BALANCER = "lb1 (upstream nginx-chat-7d49)"


def test_what_an_upstream_witnesses_is_asked_of_its_balancers_host_and_of_no_other(journal: Journal) -> None:
    instance = journal.armed()
    head = replace(journal.armed(BALANCER, folder=f"{RUN}.1.1"), host="lb1")
    asked = Witnesses({"gpu1": (instance,), "lb1": (head,)}, asked_at={"gpu1": 5, "lb1": 5})
    ignorant = Witnesses({"gpu1": (instance,), "lb1": ()}, asked_at={"gpu1": 5, "lb1": 5})

    assert journal.problems(asked) == []
    assert journal.problems(known(instance, asked_at=5)) == []  # the balancer's host was not asked
    (finding,) = journal.audit(ignorant).findings
    assert (finding.problem, finding.sequence) == ("not_witnessed", 5)
    assert "of which lb1 knows nothing" in finding.message


def test_an_event_that_an_upstream_knows_as_another_one_was_rewritten(journal: Journal) -> None:
    head = replace(journal.armed(BALANCER, folder=f"{RUN}.1.1"), host="lb1", hash="00")

    assert ("rewritten", head.sequence) in journal.problems(known(head, host="lb1"))


def test_an_instance_that_is_named_otherwise_than_its_host_counts_by_the_hosts_of_the_run(journal: Journal) -> None:
    head = journal.armed("chat-a")
    elsewhere = Head("gpu9", head.run, head.what, head.at, head.sequence, head.hash)

    assert journal.problems(known(head)) == []
    assert journal.problems(known(asked_at=3)) == [("not_witnessed", 3)]
    unasked = journal.audit(known(host="gpu9", asked_at=3)).unasked
    assert [(armed.host, armed.sequence) for armed in unasked] == [("chat-a", 3)]
    assert journal.audit(known(elsewhere, host="gpu9")).unasked == ()


def test_arming_that_failed_or_whose_intent_could_not_be_stored_left_no_head(journal: Journal) -> None:
    journal.add("arm.intent", {"host": "gpu1"})
    journal.add("arm.outcome", {"ok": False, "reason": "not_armed"})
    journal.add("arm.outcome", {"host": "gpu1", "ok": True, "armed": True})

    assert journal.problems(known(asked_at=4)) == []


def test_a_silent_host_is_a_finding_that_says_nothing_about_the_record(journal: Journal) -> None:
    audit = journal.audit(Witnesses(silent={"gpu1": "no route to host"}))

    assert [finding.problem for finding in audit.findings] == ["host_silent"]
    assert (audit.words[:2], audit.exit_code) == (("linked", "complete"), 3)


def test_heads_of_several_askings_are_heard_together() -> None:
    one, other = (Head("gpu1", "r", "armed", "", number, "x") for number in (1, 2))
    both = known(one, asked_at=1) + Witnesses({"gpu1": (other,), "gpu2": ()}, {"gpu3": "why"}, {"gpu1": 5})

    assert both.heads == {"gpu1": (one, other), "gpu2": ()}
    assert both.all() == [one, other]
    assert (both.silent, both.asked_at) == ({"gpu3": "why"}, {"gpu1": 5})


def test_a_head_that_names_no_event_is_left_out() -> None:
    assert read_heads("gpu1", [{"run": "r", "sequence": None, "hash": None}, {"run": "r"}]) == ()


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"hosts": []}, {"hosts": {"a": {}}}, {"hosts": {"a": [1]}}, {"hosts": {"a": [{"sequence": 1}]}}],
)
def test_what_holds_no_heads_is_refused_with_the_shape_of_what_does(document: Any) -> None:
    with pytest.raises(InputError, match=r'\{"hosts": \{"NAME": \['):
        read_document(document)
