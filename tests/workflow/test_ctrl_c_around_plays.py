"""Ctrl-C during a play and after one: the play ends, nothing else of the change begins, and the signal still works."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.unit.adapters.play_desk import HERE, Desk
from tests.workflow.fake_doors import FakePlaybooks
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.tempers import is_changed

from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.core.lifecycle import Outcome
from changectl.core.ports import HostAddress, Json, PlayResult

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TELLS = """\
- hosts: "{{ changectl_host_name }}"
  gather_facts: false
  tasks:
    - ansible.builtin.debug: var=answer
"""


@dataclass
class ThroughAnsible(FakePlaybooks):
    """Does to the fake host what it should, and runs a real play through the real ansible-runner each time."""

    real: RunnerPlaybooks | None = None
    seen: list[str] = field(default_factory=list)

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        assert self.real is not None
        told = self.real.run("tells", HERE, {"answer": {"play": play}}, timeout=60).answers
        self.seen += [str(answer["play"]) for answer in told]
        return super().run(play, host, arguments, timeout=timeout)


@pytest.fixture
def real() -> Iterator[RunnerPlaybooks]:
    folder = Path(tempfile.mkdtemp(prefix="desk-", dir="/var/tmp"))
    yield Desk(folder).own("tells", TELLS)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_model_loads_after_a_play_aborts_and_reverts(
    real: RunnerPlaybooks, number: signal.Signals
) -> None:
    stage = Stage()
    plays = ThroughAnsible(stage.hosts, real=real)
    stage.tools = replace(stage.tools, playbooks=plays)
    sent: list[str] = []

    def load_for_ever(host: FakeHost) -> None:
        host.load_seconds = float("inf") if is_changed(host) else 1.0

    def interrupt(name: str) -> None:
        if name == "reporter waiting" and is_changed(stage.host) and not sent:
            sent.append(name)
            os.kill(os.getpid(), number)

    stage.host.on_start = load_for_ever
    stage.world.before = interrupt
    end = stage.apply(BETTER)

    assert plays.seen == ["apply", "restore"]
    assert sent
    assert (end.exit_code, end.last.outcome, end.last.reason) == (130, Outcome.REVERTED, "interrupted")
    assert stage.serving_as_before()
    assert stage.journal.bodies("ready.outcome")[0]["ok"] is True  # that of the way back: the wait itself was left


def test_a_signal_during_the_play_lets_it_end_and_begins_nothing_of_the_change_any_more() -> None:
    stage = Stage()
    stage.world.before = lambda name: os.kill(os.getpid(), signal.SIGINT) if name == "play gpu1 apply" else None
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (130, Outcome.REVERTED)
    assert stage.serving_as_before()
    after = stage.world.trace[stage.world.trace.index("play gpu1 apply") + 1 :]
    assert "journal write.outcome" in after  # it came to its end, and the record says so
    assert [name for name in after if name.startswith("play")] == ["play gpu1 restore"]
    assert not [name for name in after if name in ("door gpu1 measure", "journal verdict")]
