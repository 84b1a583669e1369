"""What is known of a step while it runs: its attempts, what came of them, and what was touched."""

from __future__ import annotations

from dataclasses import dataclass, field

from changectl.core.judgement import Judgement, Verdict
from changectl.workflow.attempt import Attempt
from changectl.workflow.lease import HostLease
from changectl.workflow.recorder import Recorder
from changectl.workflow.tools import Tools
from changectl.workflow.trial import Acceptance, Trial

WEIGHT = {Verdict.REGRESSED: 3, Verdict.INVALID: 2, Verdict.INCONCLUSIVE: 1}


@dataclass
class StepRun:
    """The step's state while it runs."""

    tools: Tools
    recorder: Recorder
    acceptance: Acceptance
    leases: dict[str, HostLease] = field(default_factory=dict)  # by instance
    attempts: list[Attempt] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)  # one of each instance that was tried, in order

    @property
    def judgements(self) -> list[Judgement]:
        """One of each instance that was tried; none in an incident."""
        return [trial.judgement for trial in self.trials if trial.judgement is not None]

    @property
    def judgement(self) -> Judgement | None:
        """The one that decides: the worst."""
        return max(self.judgements, key=lambda one: WEIGHT.get(one.verdict, 0), default=None)

    @property
    def outage(self) -> float:
        """Seconds in which instances were stopped or loading, added up."""
        return sum(attempt.outage for attempt in self.attempts)

    @property
    def touched(self) -> list[Attempt]:
        """The instances on which something may have been changed, last first."""
        return [attempt for attempt in reversed(self.attempts) if attempt.touched]
