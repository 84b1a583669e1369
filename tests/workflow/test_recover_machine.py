"""Random lives: controllers die anywhere, leases run out, recover dies too; in the end the record tells what runs."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ChangectlError
from changectl.core.history_runs import runs
from changectl.core.lifecycle import Outcome

LONGEST = 160  # port calls of a run on two hosts, and some more
TURNS = ("disarm", "disarm", "restore", "apply", "step.closed")
MOMENTS = st.one_of(st.tuples(st.sampled_from(TURNS), st.integers(1, 6)), st.integers(1, LONGEST))


class Lives(RuleBasedStateMachine):
    """One service, many controllers."""

    stage: Stage
    slots: str  # what the service runs with, as far as the record was ever settled

    @initialize(names=st.sampled_from([("gpu1",), ("gpu1", "gpu2")]))
    def begin(self, names: tuple[str, ...]) -> None:
        self.stage, self.slots = Stage(names), "4"

    def _dying(self, moment: int | tuple[str, int]) -> None:
        """By the number of a call, or at the n-th call of a kind where much is decided."""
        begun = len(self.stage.world.trace)

        def now(_: str, seen: int) -> bool:
            if isinstance(moment, int):
                return seen >= moment
            word, times = moment
            return sum(word in call for call in self.stage.world.trace[begun:]) >= times

        self.stage.world.before = die_before(self.stage.world, now)

    def _alive(self) -> None:
        self.stage.world.before = lambda name: None
        self.stage.memory.cut_off = [one.run for one in runs(self.stage.journal.lines) if one.is_open_work]

    @precondition(lambda self: not self.stage.memory.cut_off)
    @rule(slots=st.sampled_from([BETTER, WORSE, 6]), moment=MOMENTS)
    def apply_and_die(self, slots: int, moment: int | tuple[str, int]) -> None:
        self._dying(moment)
        with contextlib.suppress(Killed, ChangectlError):
            self.stage.apply(slots)
        self._alive()

    @precondition(lambda self: self.stage.memory.cut_off)
    @rule()
    def leases_run_out(self) -> None:
        for host in self.stage.hosts.values():
            host.lease_runs_out()

    @precondition(lambda self: self.stage.memory.cut_off)
    @rule(moment=MOMENTS)
    def recover_and_die(self, moment: int | tuple[str, int]) -> None:
        self._dying(moment)
        for run in self.stage.memory.cut_off:
            with contextlib.suppress(Killed, ChangectlError):
                settle(self.stage, run)
        self._alive()

    @precondition(lambda self: self.stage.memory.cut_off)
    @rule()
    def recover(self) -> None:
        for run in self.stage.memory.cut_off:
            with contextlib.suppress(ChangectlError):
                settle(self.stage, run)
        self._alive()

    @invariant()
    def what_is_settled_is_true(self) -> None:
        """Where no run is open, every host runs what the last judged and kept change says, or the beginning."""
        if self.stage.memory.cut_off:
            return
        wanted = "4"
        for one in runs(self.stage.journal.lines):
            step = one.steps[0] if one.steps else None
            if step is not None and step.outcome == Outcome.KEPT and step.changed_something:
                wanted = str(step.change.after)
        for host in self.stage.hosts.values():
            assert host.process is not None
            assert host.process.argv[-1] == wanted
            assert not host.stale
            assert host.keeper.armed == {}  # nothing is left that would change it later


Lives.TestCase.settings = settings(
    max_examples=120, stateful_step_count=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLives = Lives.TestCase
