"""The trial of several pairs: the saved and the new configuration in turns, each freshly started, until it is decided.

Going back to the saved configuration is an act like any other here: journaled, under the lease, the dead-man armed all
the time. So wherever it is cut off, what follows is what follows any cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from changectl.core.effort import OUTAGE_TOO_SHORT, TOO_SHORT, Effort
from changectl.core.judgement import Judgement, Reason
from changectl.core.trial_order import Letter, Times, looks, order
from changectl.core.trial_phases import TrialPhase
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.measure import Phase, Start
from changectl.workflow.not_kept import NotKept
from changectl.workflow.ready import Ready

Measured = Callable[[Letter, int, Start], Phase]
Judge = Callable[[Sequence[TrialPhase], Sequence[int]], Judgement]
Began = Mapping[Letter, Callable[[], Ready]]  # waits for a start; raises NotKept where it does not become ready
Proven = Callable[[Ready], None]  # raises NotKept where the change did not arrive


@dataclass(frozen=True)
class Acts:
    """What a phase is made of; the quick trial uses the same."""

    began: Began
    proven: Proven
    measured: Measured
    usable: Callable[[Phase], None]  # raises NotKept: nothing can be compared with this baseline
    checked: Callable[[], None]  # the operator's own checks; raises NotKept
    judged: Judge


@dataclass
class Turns:
    """One instance in its trial.

    Attributes:
        attempt: the instance.
        acts: what a phase is made of.
        outage: seconds that this instance may be stopped or loading in this step; None: as long as it takes.
        on_inconclusive: what is to be done where the evidence does not suffice: revert, ask or keep.
        running: the configuration that the service was started on last.
        phases: those that were measured.
        process: the process that the new configuration was last measured on.
    """

    attempt: Attempt
    acts: Acts
    outage: float | None
    on_inconclusive: str
    running: Letter = "A"
    phases: list[TrialPhase] = field(default_factory=list)
    process: tuple[int, int | None] | None = None
    _downs: list[float] = field(default_factory=list)  # seconds without an answer, of each start
    _measured_seconds: float = 0.0  # of the last phase
    _checked: bool = False

    def judge(self, effort: Effort) -> Judgement:
        """Phase after phase until the evidence decides; the configuration that runs at the end follows the verdict.

        Args:
            effort: how many pairs; of a time as many as fit, by how long the first phase took.

        Raises:
            NotKept: the baseline is worthless, a start failed, no pair fits into the time or the outage, or the change
                did not arrive or moved something else.
        """
        self._require_room(self.attempt.tools.memory.load_seconds(self.attempt.target.service.service) or 0.0, 3)
        self._phase(1, "A")
        self._require_room(max(self._downs), self._spare)
        pairs = self._pairs(effort)
        schedule, judgement = looks(pairs), None
        for number, letter in list(enumerate(order(pairs), 1))[1:]:
            if judgement is not None and not self._may_start():
                judgement = self._out_of_time(judgement)
                break
            self._phase(number, letter)
            judgement = self.acts.judged(self.phases, schedule)
            self._tell(number, judgement)
            if judgement.decision != "go_on":
                break
        if judgement is None:
            raise ValueError("a trial without a pair judges nothing")
        if judgement.decision == "keep" or (judgement.decision == "policy" and self.on_inconclusive != "revert"):
            self._leave_changed()
        return judgement

    def _require_room(self, load: float, starts: int) -> None:
        """Raises NotKept where not even one pair and the way back fit into the outage: then it is not tried at all."""
        needed = self.attempt.outage + starts * load
        if self.outage is None or needed <= self.outage:
            return
        name, allowed = self.attempt.target.name, format_duration(self.outage, 3)
        text = f"{name}: one pair of phases and the way back take about {format_duration(needed, 3)} without an answer"
        raise NotKept(OUTAGE_TOO_SHORT, f"{text}, and the plan's outage is {allowed}: it was not tried there")

    @property
    def _spare(self) -> int:
        """Starts that have to fit in before the next phase begins: its own, and those that may follow it."""
        return 3 if self.on_inconclusive == "ask" else 2

    def _pairs(self, effort: Effort) -> int:
        times = Times(load=max(self._downs), phase=self._measured_seconds)
        pairs = effort.pairs(times)
        if not pairs:
            text = (
                f"{self.attempt.target.name}: no pair of phases fits into {effort}, so the change was not tried there"
            )
            raise NotKept(TOO_SHORT, f"{text}: {effort.too_short(times)}")
        return pairs

    def _phase(self, number: int, letter: Letter) -> None:
        self.attempt.tools.interrupts.check()
        ready = self._start(letter)
        fresh = self.attempt.seen and ready.status.identity not in (None, self.attempt.running)
        began = self.attempt.tools.clock.monotonic()
        phase = self.acts.measured(letter, number, Start(fresh, ready.log, ready.seconds if fresh else None))
        self._measured_seconds = self.attempt.tools.clock.monotonic() - began
        self.phases.append(
            TrialPhase(
                number=number,
                letter=letter,
                measurement=phase.measurement,
                conditions=phase.conditions,
                fresh=fresh,
                events=phase.events,
                observations=phase.observations,
            )
        )
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
            self.attempt.change()
        else:
            self.attempt.restore()
            self.attempt.find_log_end()
        down = self.attempt.outage
        ready = self.acts.began[letter]()
        self._downs.append(self.attempt.outage - down)
        if letter == "B":
            self.acts.proven(ready)
        return ready

    def _leave_changed(self) -> None:
        """The change is to stay: where the saved configuration ran last, the new one is put in place once more."""
        if self.running == "A":
            self.process = self._start("B").status.identity

    def _may_start(self) -> bool:
        """Whether one more phase, and the starts after it that the verdict may need, fit into the outage."""
        return self.outage is None or self.attempt.outage + self._spare * max(self._downs) <= self.outage

    def _out_of_time(self, judgement: Judgement) -> Judgement:
        used = format_duration(self.attempt.outage, 3)
        text = f"the plan's outage is used up: {used} of {format_duration(self.outage or 0.0, 3)}, and one more phase"
        text += " does not fit"
        return replace(judgement, decision="policy", reasons=(Reason("outage_used", text), *judgement.reasons))

    def _tell(self, number: int, judgement: Judgement) -> None:
        if number % 2 == 0 and judgement.decision == "go_on":
            why = "; ".join(str(reason) for reason in judgement.reasons)
            self.attempt.tools.reporter.note(f"{self.attempt.target.name}: {why}")
