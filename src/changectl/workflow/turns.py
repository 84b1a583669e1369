"""The trial of several pairs: the saved and the new configuration in turns, each freshly started, until it is decided.

Going back to the saved configuration is an act like any other here: journaled, under the lease, the dead-man armed all
the time. So wherever it is cut off, what follows is what follows any cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core.declared.effort import TOO_SHORT, Effort
from changectl.core.judging.judgement import Judgement, Reason
from changectl.core.replaying.terms import cut_short
from changectl.core.trial.order import MOST_PAIRS, Letter, looks, order
from changectl.core.trial.phases import TrialPhase, pairs_done
from changectl.core.trial.record import RecordedTrial, looks_taken
from changectl.workflow.attempt import Attempt
from changectl.workflow.measure import Phase, Start
from changectl.workflow.not_kept import NotKept
from changectl.workflow.ready import Ready
from changectl.workflow.restore import collect_evidence
from changectl.workflow.room import Room
from changectl.workflow.staying_out import too_long_out

Measured = Callable[[Letter, int, Start], Phase]
Judge = Callable[[Sequence[TrialPhase], Sequence[int]], Judgement]
Began = Mapping[Letter, Callable[[], Ready]]  # waits for a start; raises NotKept where it does not become ready
Proven = Callable[[Ready], None]  # raises NotKept where the change did not arrive
GOING_BACK = "the trial goes on with the saved configuration; this is what the new one left"


@dataclass(frozen=True)
class Acts:
    """What a phase is made of; the quick trial uses the same."""

    began: Began
    proven: Proven
    measured: Measured
    usable: Callable[[Phase], None]  # raises NotKept: nothing can be compared with this baseline
    checked: Callable[[], None]  # the operator's own checks; raises NotKept
    judged: Judge


@dataclass(frozen=True)
class Longer:
    """A trial that goes on: what it had until now, and how many pairs more it gets."""

    earlier: RecordedTrial
    more: int


@dataclass
class Turns:
    """One instance in its trial.

    Attributes:
        attempt: the instance.
        acts: what a phase is made of.
        room: the time and the outage that it may take.
        on_inconclusive: what is to be done where the evidence does not suffice: revert, ask or keep.
        longer: where it goes on with a trial on record.
        pairs: how many there are to be; None: as the effort says.
        letters: of the phases in order; a calibration has the saved configuration alone.
        running: the configuration that the service was started on last.
        phases: those that were measured, in all runs of the trial.
        schedule: the pairs after which there is a look, and was one.
        process: the process that the new configuration was last measured on.
        stopped: what ended it before the evidence did; None: nothing.
    """

    attempt: Attempt
    acts: Acts
    room: Room
    on_inconclusive: str
    longer: Longer | None = None
    pairs: int | None = None
    letters: Sequence[Letter] = order(MOST_PAIRS)
    running: Letter = "A"
    phases: list[TrialPhase] = field(default_factory=list)
    schedule: tuple[int, ...] = ()
    process: tuple[int, int | None] | None = None
    stopped: Reason | None = None
    _checked: bool = False

    @property
    def looks(self) -> tuple[int, ...]:
        """The looks that were taken."""
        return looks_taken(self.phases, self.schedule)

    def judge(self, effort: Effort) -> Judgement:
        """Phase after phase until the evidence decides; the configuration that runs at the end follows the verdict.

        Args:
            effort: how many pairs; of a time as many as fit, by how long the phases took so far. A trial that goes on
                gets the pairs that it was given instead.

        Raises:
            NotKept: the baseline is worthless, a start failed, no pair fits into the time or the outage, or the change
                did not arrive or moved something else.
        """
        self._begin(effort)
        judgement: Judgement | None = None
        while len(self.phases) < 2 * self.schedule[-1]:
            why = self.room.lacking(self.attempt, self._spare) if judgement is not None else None
            why = why or too_long_out(self.attempt, self.running, self.room.times, judged=judgement is not None)
            if judgement is not None and why is not None:
                judgement, self.stopped = cut_short(judgement, why), why
                break
            number = self.phases[-1].number + 1
            self._phase(number, self.letters[number - 1])
            self._plan_anew(effort)
            judgement = self.acts.judged(self.phases, self.schedule)
            self._tell(number, judgement)
            if judgement.decision != "go_on":
                break
        if judgement is None:
            raise ValueError("a trial without a pair judges nothing")
        if judgement.decision == "keep" or (judgement.decision == "policy" and self.on_inconclusive != "revert"):
            self._leave_changed()
        return judgement

    def _begin(self, effort: Effort) -> None:
        """The first phase, or what is on record in its place; after it is known how many pairs there will be."""
        load = self.attempt.tools.memory.load_seconds(self.attempt.target.service.service)
        self.room.begin(self.attempt)
        self.room.require(self.attempt, load or 0.0, 3)
        if self.longer is None:
            self._phase(1, "A")
            self.room.require(self.attempt, self.room.load, self._spare)
            self.schedule = looks(self._pairs(effort))
        else:
            earlier = self.longer.earlier
            self.phases = list(earlier.phases)
            self.schedule = (*earlier.looks, *looks(earlier.pairs + self.longer.more, earlier.looks))
            done, most = len(self.phases), 2 * self.schedule[-1]
            told = f"{done} phases are on record, up to {most - done} more follow"
            self.attempt.tools.reporter.note(f"{self.attempt.target.name}: the trial goes on: {told}")

    @property
    def _spare(self) -> int:
        """Starts that have to fit in before the next phase begins: its own, and those that may follow it."""
        return 3 if self.on_inconclusive == "ask" else 2

    def _pairs(self, effort: Effort) -> int:
        times = self.room.times
        pairs = self.pairs or effort.pairs(times)
        if not pairs:
            text = (
                f"{self.attempt.target.name}: no pair of phases fits into {effort}, so the change was not tried there"
            )
            raise NotKept(TOO_SHORT, f"{text}: {effort.too_short(times)}")
        return pairs

    def _plan_anew(self, effort: Effort) -> None:
        """After a pair, by what the phases really took: of a time only so many more as still fit into it."""
        done = pairs_done(self.phases)
        if self.longer is not None or effort.seconds is None or self.phases[-1].number != 2 * done:
            return
        pairs = min(MOST_PAIRS, done + effort.pairs_left(self.room.used(self.attempt), self.room.times))
        if pairs != self.schedule[-1]:
            taken = tuple(look for look in self.schedule if look < done)
            self.schedule = (*taken, *looks(pairs, taken))

    def _phase(self, number: int, letter: Letter) -> None:
        self.attempt.tools.interrupts.check()
        ready = self._start(letter)
        fresh = self.attempt.seen and ready.status.identity not in (None, self.attempt.running)
        began = self.attempt.tools.clock.monotonic()
        phase = self.acts.measured(letter, number, Start(fresh, ready.log, ready.seconds if fresh else None))
        # The next one may use all of its time: what is promised has to hold for it, too.
        self.room.phase_took(self.attempt.tools.clock.monotonic() - began + phase.measurement.spared)
        self.phases.append(phase.as_trial_phase(number, fresh=fresh))
        if letter == "A":
            if number == 1:
                self.acts.usable(phase)
            return
        self.process = phase.process
        if not self._checked:
            self.acts.checked()
            self._checked = True

    def _start(self, letter: Letter) -> Ready:
        """Start the service anew on one configuration, whichever ran before."""
        before, self.running = self.running, letter
        if letter == before:
            self.attempt.restart_changed() if letter == "B" else self.attempt.restart()
        elif letter == "B":
            self.attempt.evidence_kept = False
            self.attempt.change()
        else:
            collect_evidence(self.attempt, GOING_BACK)  # once the saved configuration runs, nobody can
            self.attempt.restore()
            self.attempt.find_log_end()
        down = self.attempt.outage
        ready = self.acts.began[letter]()
        self.room.start_took(self.attempt.outage - down)
        if letter == "B":
            self.acts.proven(ready)
        elif before == "B":
            self.attempt.evidence_kept = True
        return ready

    def _leave_changed(self) -> None:
        """The change is to stay: where the saved configuration ran last, the new one is put in place once more."""
        if self.running == "A":
            self.process = self._start("B").status.identity

    def _tell(self, number: int, judgement: Judgement) -> None:
        if number % 2 == 0 and judgement.decision == "go_on":
            why = "; ".join(str(reason) for reason in judgement.reasons)
            self.attempt.tools.reporter.note(f"{self.attempt.target.name}: {why}")
