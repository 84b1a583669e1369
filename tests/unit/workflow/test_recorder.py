"""Intent before the act, outcome after it; no act without a committed intent."""

from __future__ import annotations

import pytest
from tests.workflow.world import FakeJournal, World

from changectl.core.errors import ChangectlError, HostCallError
from changectl.workflow.recorder import Recorder
from changectl.workflow.secrets import Secrets


def recorder() -> tuple[Recorder, FakeJournal]:
    journal = FakeJournal(World())
    secrets = Secrets(b"salt", lambda tripwire: None)
    secrets.learn(["correct-horse-battery"])
    return Recorder(journal, secrets, "R1", 2), journal


def test_an_act_has_its_intent_and_its_outcome() -> None:
    record, journal = recorder()
    with record.acting("write", {"host": "gpu1"}) as outcome:
        assert [event.kind for event in journal.lines] == ["write.intent"]
        outcome["changed"] = True
    last = journal.lines[-1]
    assert (last.run, last.step, last.kind) == ("R1", 2, "write.outcome")
    assert last.body == {"changed": True, "ok": True}


def test_a_failure_is_an_outcome_with_its_reason() -> None:
    record, journal = recorder()
    with pytest.raises(HostCallError), record.acting("write", {}):
        raise HostCallError("no", reason="immutable")
    assert journal.lines[-1].body == {"ok": False, "reason": "immutable", "message": "no"}


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt("odd")])
def test_whatever_ends_an_act_is_recorded(error: BaseException) -> None:
    record, journal = recorder()
    with pytest.raises(type(error)), record.acting("write", {}):
        raise error
    assert journal.lines[-1].body["reason"] == type(error).__name__


def test_without_a_committed_intent_the_act_does_not_happen() -> None:
    record, journal = recorder()
    done = []

    def full(name: str) -> None:
        raise ChangectlError("full")

    journal.world.before = full
    with pytest.raises(ChangectlError), record.acting("write", {}):
        done.append("act")
    assert done == []


def test_on_the_way_back_the_act_happens_although_nothing_can_be_recorded() -> None:
    record, journal = recorder()
    done = []

    def full(name: str) -> None:
        raise ChangectlError("full")

    journal.world.before = full
    with record.insisting().acting("restore", {}):
        done.append("act")
    assert done == ["act"]


def test_known_secrets_are_taken_out_at_any_depth() -> None:
    record, journal = recorder()
    record.note("note", {"a": [{"b": "x correct-horse-battery y"}], "correct-horse-battery": 1})
    assert "correct-horse-battery" not in str(journal.lines[-1].body)
