"""Does measuring see? A known delay on the client's way has to be found as harm, and no delay as none.

The judge, its gates and its limits are those of a trial of two pairs: what it does not find here, it finds in no trial.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from changectl.core.judging.judgement import Judgement, Reason, Verdict
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.replaying.terms import Terms
from changectl.core.trial.order import Letter
from changectl.core.trial.phases import TrialPhase
from changectl.core.units import format_duration

Kind = Literal["reference", "control", "delayed"]
# Both pairs of "control" and both of "delayed" lie around the same middle as the reference, so that a host that gets
# slower step by step hurts all of them alike.
KINDS: tuple[Kind, ...] = ("reference", "control", "delayed", "delayed", "control", "reference")
PAIRS = 2
LEAST_DELAY = 0.025  # seconds: five times below which no difference of a first token is ever harm
DELAY_SHARE = 0.4  # of the time to the first token: less than what is harm without any statistics
UNUSABLE, FALSE_ALARM, NOT_SEEN, NOT_COMPARABLE = "unusable", "false_alarm", "delay_not_seen", "not_comparable"
_QUIETER = "do it while the host is quieter, or longer (`--seconds`)"
ADVICE: Mapping[str, str] = {
    UNUSABLE: "mend what is named first, or give each phase more time (`--seconds`)",
    FALSE_ALARM: f"something else uses the host or the way to it: {_QUIETER}",
    NOT_SEEN: "trials on this host do not find this either, and their verdicts of no harm prove nothing: "
    f"{_QUIETER}, let another host send the load (`caller`), or calibrate it",
    NOT_COMPARABLE: "see what is named; no trial would have had a verdict there",
}


@dataclass(frozen=True, slots=True)
class Sight:
    """What came of it.

    Attributes:
        delay: seconds that were put into the way; 0: it did not come to that.
        found: seconds by which the figure moved, the medians of both; None: not known.
        metric: the figure that the delay had to move.
        reasons: why measuring is blind; empty: it sees.
        undelayed: the judgement on no difference at all; None: it did not come to that.
        delayed: the judgement on the delay; None likewise.
    """

    delay: float
    found: float | None
    metric: str
    reasons: tuple[Reason, ...]
    undelayed: Judgement | None = None
    delayed: Judgement | None = None

    @property
    def sees(self) -> bool:
        """Whether measuring was proven."""
        return not self.reasons

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {
            "sees": self.sees,
            "delay": self.delay,
            "found": self.found,
            "metric": self.metric,
            "reasons": [asdict(reason) for reason in self.reasons],
            "undelayed": None if self.undelayed is None else self.undelayed.to_json(),
            "delayed": None if self.delayed is None else self.delayed.to_json(),
        }


def first_metric(level: LevelMeasurement) -> str:
    """The figure that a delay of the request has to move: up to the first token, or of answers that come whole, all."""
    return "e2e_user" if level.has_no_meaning("ttft_user") else "ttft_user"


def delay_for(level: LevelMeasurement) -> float:
    """Seconds to put into the way, by what the service took without; in whole milliseconds, as people write them."""
    first = level.value(first_metric(level), "p50")
    share = DELAY_SHARE * first if first is not None and math.isfinite(first) else 0.0
    return math.ceil(max(LEAST_DELAY, share) * 1000) / 1000


def blind_from_the_start(reasons: Sequence[Reason]) -> Sight:
    """Where already the first phase says nothing: the others would cost their load in vain."""
    return Sight(0.0, None, "", tuple(Reason(UNUSABLE, reason.text) for reason in reasons))


def sight(phases: Sequence[tuple[Kind, TrialPhase]], delay: float, level: str) -> Sight:
    """Judge the phases, which ran in the order of KINDS.

    Args:
        phases: with their kinds.
        delay: that the delayed ones had, in seconds.
        level: the one that was measured.
    """
    undelayed, delayed = (_judged(phases, kind) for kind in ("control", "delayed"))
    first = phases[0][1].measurement.level(level)
    metric = "ttft_user" if first is None else first_metric(first)
    found = _moved(phases, level, metric)
    reasons: list[Reason] = []
    for judgement in (undelayed, delayed):
        if judgement.verdict is Verdict.INVALID:
            told = {reason.text: None for reason in judgement.reasons}
            reasons += [Reason(NOT_COMPARABLE, text) for text in told]
    if undelayed.verdict is Verdict.REGRESSED:
        said = "; ".join(reason.text for reason in undelayed.reasons)
        reasons.append(Reason(FALSE_ALARM, f"nothing was different, and it was judged regressed: {said}"))
    if delayed.verdict is not Verdict.INVALID and not _breached(delayed, metric, level):
        text = f"a delay of {format_duration(delay)} was not judged a regression of {metric} at {level}"
        said = f"it moved by {'what is not known' if found is None else format_duration(found, 3)}"
        reasons.append(Reason(NOT_SEEN, f"{text} ({said}): {_why(delayed, metric, level)}"))
    return Sight(delay, found, metric, tuple(dict.fromkeys(reasons)), undelayed, delayed)


def _judged(phases: Sequence[tuple[Kind, TrialPhase]], kind: Kind) -> Judgement:
    """By what a trial of an interactive service is judged by: a limit of its own may lie far above what it takes."""
    chosen: list[TrialPhase] = []
    for own, phase in phases:
        if own in ("reference", kind):
            letter: Letter = "A" if own == "reference" else "B"
            events = tuple(replace(event, phase=letter) for event in phase.events)
            # Both sides were measured on the very same process: equally fresh.
            chosen.append(replace(phase, number=len(chosen) + 1, letter=letter, fresh=True, events=events))
    return Terms(service_class="interactive", schedule=(PAIRS,)).judge(chosen)


def _breached(judgement: Judgement, metric: str, level: str) -> bool:
    rows = [row for row in judgement.rows if row.state == "breach" and row.level == level]
    return judgement.verdict is Verdict.REGRESSED and any(row.metric.startswith(metric) for row in rows)


def _why(judgement: Judgement, metric: str, level: str) -> str:
    row = next((one for one in judgement.rows if one.metric == f"{metric}_p50" and one.level == level), None)
    if row is not None and row.note:
        return row.note
    return "; ".join(reason.text for reason in judgement.reasons) or judgement.verdict.value


def _moved(phases: Sequence[tuple[Kind, TrialPhase]], level: str, metric: str) -> float | None:
    means: dict[str, float] = {}
    for kind in ("reference", "delayed"):
        found = [one.measurement.level(level) for own, one in phases if own == kind]
        values = [value for one in found if one and (value := one.value(metric, "p50")) is not None]
        if len(values) < PAIRS or not all(map(math.isfinite, values)):
            return None
        means[kind] = math.fsum(values) / len(values)
    return means["delayed"] - means["reference"]
