"""Random lives: controllers die anywhere, leases run out, recover dies too; in the end the record tells what runs."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ChangectlError
from changectl.core.history.runs import runs
from changectl.core.lifecycle import Outcome

LONGEST = 300  # port calls of a run on three hosts, and some more
TURNS = ("disarm", "disarm", "restore", "apply", "turn", "step.closed")
PLACES = [("gpu1",), ("gpu1", "gpu2"), ("gpu1", "gpu2", "gpu3"), ("gpu1:8080", "gpu1:8081")]
POLICIES = st.sampled_from(["", "on_partial: revert_all\n"])
MOMENTS = st.one_of(st.tuples(st.sampled_from(TURNS), st.integers(1, 6)), st.integers(1, LONGEST))


class Lives(RuleBasedStateMachine):
    """One service, many controllers."""

    stage: Stage

    @initialize(names=st.sampled_from(PLACES))
    def begin(self, names: tuple[str, ...]) -> None:
        self.stage = Stage(names)

    def _at(self, moment: int | tuple[str, int]) -> Callable[[str, int], bool]:
        """By the number of a call, or at the n-th call of a kind where much is decided."""
        begun = len(self.stage.world.trace)

        def now(_: str, seen: int) -> bool:
            if isinstance(moment, int):
                return seen >= moment
            word, times = moment
            return sum(word in call for call in self.stage.world.trace[begun:]) >= times

        return now

    def _dying(self, moment: int | tuple[str, int]) -> None:
        self.stage.world.before = die_before(self.stage.world, self._at(moment))

    def _alive(self) -> None:
        self.stage.world.before = lambda name: None
        self.stage.memory.cut_off = [one.run for one in runs(self.stage.journal.lines) if one.is_open_work]

    @precondition(lambda self: not self.stage.memory.cut_off)
    @rule(slots=st.sampled_from([BETTER, WORSE, 6]), moment=MOMENTS, policy=POLICIES)
    def apply_and_die(self, slots: int, moment: int | tuple[str, int], policy: str) -> None:
        self._dying(moment)
        with contextlib.suppress(Killed, ChangectlError):
            self.stage.apply(slots, extra=policy)
        self._alive()

    @precondition(lambda self: not self.stage.memory.cut_off)
    @rule(slots=st.sampled_from([BETTER, WORSE, 6]), moment=MOMENTS, policy=POLICIES)
    def apply_and_interrupt(self, slots: int, moment: int | tuple[str, int], policy: str) -> None:
        now, begun, signalled = self._at(moment), len(self.stage.world.trace), False

        def interrupt(name: str) -> None:
            nonlocal signalled
            if not signalled and self.stage.records.held and now(name, len(self.stage.world.trace) - begun):
                signalled = True
                os.kill(os.getpid(), signal.SIGINT)

        self.stage.world.before = interrupt
        with contextlib.suppress(ChangectlError):
            self.stage.apply(slots, extra=policy)
        self._alive()

    @precondition(lambda self: not self.stage.memory.cut_off)
    @rule(slots=st.sampled_from([BETTER, 6]), which=st.integers(0, 2))
    def apply_where_one_does_not_start(self, slots: int, which: int) -> None:
        host = list(self.stage.hosts.values())[which % len(self.stage.hosts)]
        running = host.process.argv[-1] if host.process else ""
        host.refuses = lambda argv: "out of memory" if argv[-1] not in ("4", running) else None
        with contextlib.suppress(ChangectlError):
            self.stage.apply(slots)
        host.refuses = lambda argv: None
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
        """Where no run is open, every host runs what the last change says that was kept there, or the beginning."""
        if self.stage.memory.cut_off:
            return
        wanted = dict.fromkeys(self.stage.hosts, "4")
        for one in runs(self.stage.journal.lines):
            for step in one.steps:
                wanted |= {end.name: str(step.change.after) for end in step.instances if end.outcome == Outcome.KEPT}
        for name, host in self.stage.hosts.items():
            assert host.process is not None
            assert host.process.argv[-1] == wanted[name]
            assert not host.stale
            assert host.keeper.armed == {}  # nothing is left that would change it later


Lives.TestCase.settings = settings(
    max_examples=70, stateful_step_count=8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLives = Lives.TestCase
