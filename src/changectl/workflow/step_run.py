"""What is known of a step while it runs: its attempts, what came of them, and what was touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.rollout import ALREADY, STAYS, UNTOUCHED
from changectl.workflow.attempt import Attempt
from changectl.workflow.contact import Contact
from changectl.workflow.lease import HostLease
from changectl.workflow.recorder import Recorder
from changectl.workflow.tools import Tools
from changectl.workflow.trial import Acceptance, Trial

WEIGHT = {Verdict.REGRESSED: 3, Verdict.INVALID: 2, Verdict.INCONCLUSIVE: 1}


@dataclass
class StepRun:
    """The step's state while it runs.

    Attributes:
        leases: by instance.
        contacts: every instance, in order; also those that have the value already.
        attempts: those that are to be changed, in order.
        trials: by instance: of each that was tried.
        ends: by instance: what became of it, where that is decided.
        all_back: whether what is kept goes back too: as the plan says, or since it cannot be recorded as kept.
    """

    tools: Tools
    recorder: Recorder
    acceptance: Acceptance
    leases: dict[str, HostLease] = field(default_factory=dict)
    contacts: Sequence[Contact] = ()
    attempts: list[Attempt] = field(default_factory=list)
    trials: dict[str, Trial] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    all_back: bool = False

    @property
    def held(self) -> list[HostLease]:
        """All leases of the step: those on the instances' hosts, and those on what spreads requests over them."""
        return [*self.leases.values(), *(lease for attempt in self.attempts for lease in attempt.gate.leases)]

    @property
    def judgements(self) -> list[Judgement]:
        """One of each instance that was tried; none in an incident."""
        return [trial.judgement for trial in self.trials.values() if trial.judgement is not None]

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

    @property
    def kept(self) -> list[Attempt]:
        """The instances whose hosts have on record that the change stays there, in order."""
        return [attempt for attempt in self.attempts if self.ends.get(attempt.target.name) in STAYS]

    @property
    def instances(self) -> dict[str, str]:
        """Every instance with what became of it."""
        changing = {attempt.target.name for attempt in self.attempts}
        return {
            contact.target.name: self.ends.get(
                contact.target.name, UNTOUCHED if contact.target.name in changing else ALREADY
            )
            for contact in self.contacts
        }
