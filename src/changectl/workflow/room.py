"""What a trial may take on one instance: the plan's outage, and the time of `effort: {time}`."""

from __future__ import annotations

from dataclasses import dataclass, field

from changectl.core.declared.effort import OUTAGE_TOO_SHORT
from changectl.core.judging.judgement import Reason
from changectl.core.trial.order import Times
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.not_kept import NotKept


@dataclass
class Room:
    """The limits of one trial, and what starts and phases took until now.

    Attributes:
        outage: seconds that the instance may be stopped or loading in this step; None: as long as it takes.
        seconds: that all phases and starts may take, the way back not counted; None: as long as it takes.
        whose: who says both, for sentences.
    """

    outage: float | None
    seconds: float | None = None
    whose: str = "the plan's"
    _began: float = 0.0
    _downs: list[float] = field(default_factory=list)  # seconds without an answer, of each start
    _phases: list[float] = field(default_factory=list)

    def begin(self, attempt: Attempt) -> None:
        """From now on the time counts."""
        self._began = attempt.tools.clock.monotonic()

    def start_took(self, seconds: float) -> None:
        """A start left the instance without an answer for so long."""
        self._downs.append(seconds)

    def phase_took(self, seconds: float) -> None:
        """A phase was measured for so long."""
        self._phases.append(seconds)

    def used(self, attempt: Attempt) -> float:
        """Seconds since it began."""
        return attempt.tools.clock.monotonic() - self._began

    @property
    def load(self) -> float:
        """The longest start; 0: there was none."""
        return max(self._downs, default=0.0)

    @property
    def times(self) -> Times:
        """What a start and a phase took at the most: what is promised has to hold for the next ones, too."""
        return Times(load=self.load, phase=max(self._phases, default=0.0))

    def require(self, attempt: Attempt, load: float, starts: int) -> None:
        """Raises NotKept where not even one pair and the way back fit into the outage: then it is not tried at all."""
        needed = attempt.outage + starts * load
        if self.outage is None or needed <= self.outage:
            return
        name, allowed = attempt.target.name, format_duration(self.outage, 3)
        text = f"{name}: one pair of phases and the way back take about {format_duration(needed, 3)} without an answer"
        raise NotKept(OUTAGE_TOO_SHORT, f"{text}, and {self.whose} outage is {allowed}: it was not tried there")

    def lacking(self, attempt: Attempt, starts: int) -> Reason | None:
        """Why one more phase, and the starts after it that the verdict may need, do not fit; None: they do."""
        if self.outage is not None and attempt.outage + starts * self.load > self.outage:
            return self._reason("outage_used", "outage", attempt.outage, self.outage)
        times, used = self.times, self.used(attempt)
        if self.seconds is not None and used + times.load + times.phase > self.seconds:
            return self._reason("time_used", "time", used, self.seconds)
        return None

    def _reason(self, code: str, what: str, used: float, allowed: float) -> Reason:
        amounts = f"{format_duration(used, 3)} of {format_duration(allowed, 3)}"
        return Reason(code, f"{self.whose} {what} is used up: {amounts}, and one more phase does not fit")
