"""The terms of a verdict: all that decides it beside the phases. Recorded with it, to judge them once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from changectl.core.judging.conditions import single_difference, unknown
from changectl.core.judging.judgement import Judgement, Reason
from changectl.core.judging.verdict import judge_quick
from changectl.core.measuring.metrics import Expectation, Guard, parse_metric
from changectl.core.replaying.basis import guard_from, guard_json
from changectl.core.replaying.policy import Policy
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a change is held against.

    Attributes:
        service_class: which metrics are guarded by default ("interactive" or "offline").
        slo: absolute limits of the service that are in force.
        accept: absolute limits of the plan.
        expect: the gains that the plan expects.
        declared: the names under which the one declared change may show in the conditions.
        changes_answers: whether answers have to be judged too.
        noise: what was known of the host.
        schedule: the pairs after which there is a look; empty: a quick trial.
        stopped: what ended it before the evidence did; None: nothing.
    """

    service_class: str
    slo: Sequence[Guard] = ()
    accept: Sequence[Guard] = ()
    expect: Sequence[Expectation] = ()
    declared: Collection[str] = ()
    changes_answers: bool = False
    noise: NoiseModel = NOTHING_KNOWN
    schedule: Sequence[int] = ()
    stopped: Reason | None = None

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Every absolute limit."""
        return (*self.slo, *self.accept)

    def judge(self, phases: Sequence[TrialPhase]) -> Judgement:
        """The verdict on the phases of a trial; on one A and one B where there is no schedule.

        Raises:
            ValueError: phases that are none of such a trial.
        """
        if not self.schedule:
            return self._quick(phases)
        found = judge_trial(
            phases,
            self.schedule,
            service_class=self.service_class,
            slo=self.slo,
            accept=self.accept,
            expect=self.expect,
            declared=self.declared,
            noise=self.noise,
            changes_answers=self.changes_answers,
        )
        return found if self.stopped is None else cut_short(found, self.stopped)

    def _quick(self, phases: Sequence[TrialPhase]) -> Judgement:
        if [phase.letter for phase in phases] != ["A", "B"]:
            raise ValueError(f"a quick trial has one A and one B, not {', '.join(map(str, phases)) or 'nothing'}")
        before, after = phases
        return judge_quick(
            before.measurement,
            after.measurement,
            service_class=self.service_class,
            slo=self.slo,
            accept=self.accept,
            expect=self.expect,
            undeclared_differences=single_difference(before.conditions, after.conditions, self.declared),
            unread_conditions=unknown(before.conditions, after.conditions),
            hard_events=[*before.events, *after.events],
            observations=[*before.observations, *after.observations],
            changes_answers=self.changes_answers,
        )

    def under(self, policy: Policy) -> Terms:
        """With the limits that a policy names in place of its own; where both name a figure, `accept` holds."""
        accept = self.accept if policy.accept is None else policy.accept
        slo = self.slo if policy.slo is None else policy.slo
        accepted = {str(guard.ref) for guard in accept}
        return replace(
            self,
            service_class=policy.class_ or self.service_class,
            slo=tuple(guard for guard in slo if str(guard.ref) not in accepted),
            accept=accept,
            expect=self.expect if policy.expect is None else policy.expect.gains,
        )

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {
            "class": self.service_class,
            "slo": [guard_json(guard) for guard in self.slo],
            "accept": [guard_json(guard) for guard in self.accept],
            "expect": [{"metric": str(gain.ref), "change": gain.change} for gain in self.expect],
            "declared": sorted(self.declared),
            "changes_answers": self.changes_answers,
            "noise": self.noise.to_json(),
            "schedule": list(self.schedule),
            "stopped": None if self.stopped is None else asdict(self.stopped),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Terms:
        """What `to_json` wrote. Raises ValueError: not its shape."""
        try:
            return cls(
                service_class=raw["class"],
                slo=tuple(guard_from(one) for one in raw["slo"]),
                accept=tuple(guard_from(one) for one in raw["accept"]),
                expect=tuple(Expectation(parse_metric(one["metric"]), one["change"]) for one in raw["expect"]),
                declared=frozenset(raw["declared"]),
                changes_answers=raw["changes_answers"],
                noise=NoiseModel.from_json(raw["noise"]),
                schedule=tuple(raw["schedule"]),
                stopped=None if raw["stopped"] is None else Reason(**raw["stopped"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the shape of a verdict's terms: {error!r}") from error


def cut_short(judgement: Judgement, why: Reason) -> Judgement:
    """A trial that something else ended before its evidence did: what follows is what the plan says."""
    return replace(judgement, decision="policy", reasons=(why, *judgement.reasons))
