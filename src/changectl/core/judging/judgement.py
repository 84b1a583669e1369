"""A verdict with its reasons and numbers: what people read, records keep and exit codes follow from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from changectl.core.measuring.measured import from_plain, to_plain
from changectl.core.units import SHARE, format_change, format_moved, format_points, format_value

# "clear": within its limit, with the bound that the noise allows; "open": neither that nor a breach, as yet.
# An expected gain is "gain" (seen, with evidence), "flat" (less than expected, with evidence) or "open".
State = Literal[
    "within", "breach", "clear", "open", "gain", "flat", "not judged", "not measurable", "no data", "not defined",
    "unequal work",
]  # fmt: skip
Decision = Literal["go_on", "keep", "revert", "policy"]
_BOUNDS = ("low", "high", "bound", "evidence")


class Verdict(StrEnum):
    """What the evidence says about a change."""

    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NO_GROSS_HARM = "no_gross_harm"
    REGRESSED = "regressed"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a stable word for machines, a sentence for people."""

    code: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class HardEvent:
    """Something that needs no statistics: the process restarted, memory ran out. `phase` A: during the baseline."""

    code: str
    text: str
    phase: Literal["A", "B"] = "B"


@dataclass(frozen=True, slots=True)
class Row:
    """One judged (or deliberately not judged) figure.

    Attributes:
        metric: metric with its statistic.
        unit: of before and after, as in `units`.
        level: None: of the whole phase.
        before: None: no data; infinity: unbounded.
        after: as before.
        change: relative to before; None: not computable.
        limit: the rule it was held against, in words.
        state: what came of it.
        note: why, where the state alone does not say it.
        gap: the missing figure leaves the whole verdict open.
        low: lower bound of the change, relative to before as the change is (of shares: the difference); None: none.
        high: upper bound of the change.
        bound: bound of `after` on its bad side, in its unit: what an absolute limit is held against.
        evidence: p value that it became worse (for an expected gain: better), corrected for the number of guards.
    """

    metric: str
    unit: str
    level: str | None
    before: float | None
    after: float | None
    change: float | None
    limit: str
    state: State
    note: str = ""
    gap: bool = False
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    evidence: float | None = None

    @property
    def place(self) -> str:
        """Metric and level: `tpot_p50 at peak`."""
        return f"{self.metric} at {self.level}" if self.level else self.metric

    def __str__(self) -> str:
        moved = format_moved(self.before, self.after, self.change, self.unit)
        figures = f"{format_value(self.before, self.unit)} -> {format_value(self.after, self.unit)}"
        moved = "; ".join(part for part in (moved, self._between()) if part)
        figures += f" ({moved})" if moved else ""
        return ", ".join(part for part in (f"{self.place}: {figures}", self.limit, self.state, self.note) if part)

    def _between(self) -> str:
        if self.low is None or self.high is None:
            return ""
        shown = format_points if self.unit == SHARE else format_change
        return f"between {shown(self.low)} and {shown(self.high)}"

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values; bounds only where there are some."""
        values = {name: value for name, value in asdict(self).items() if name not in _BOUNDS or value is not None}
        return {name: to_plain(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one step.

    Attributes:
        verdict: what the evidence says; while a trial goes on, inconclusive.
        reasons: why.
        rows: figure by figure.
        flags: what must be shown whatever the verdict is.
        decision: what follows from a look of a trial: "go_on" with the next phase, "keep", "revert", or "policy": what
            the plan says for lack of evidence; None: of a quick trial, which has no looks.
        more_pairs: so many pairs more would decide it, if effect and noise stayed as they are; None: no number would,
            or nobody asked.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    rows: tuple[Row, ...] = ()
    flags: tuple[Reason, ...] = ()
    decision: Decision | None = None
    more_pairs: int | None = None

    @property
    def undecided(self) -> bool:
        """Whether the evidence does not suffice, so that the plan's policy or a person has to say what follows."""
        return self.verdict is Verdict.INCONCLUSIVE or self.decision == "policy"

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values: no NaN, infinity as "unbounded"."""
        document: dict[str, Any] = {
            "verdict": self.verdict.value,
            "reasons": [asdict(reason) for reason in self.reasons],
            "rows": [row.to_json() for row in self.rows],
            "flags": [asdict(flag) for flag in self.flags],
        }
        if self.decision is not None:
            document.update(decision=self.decision, more_pairs=self.more_pairs)
        return document

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Judgement:
        """What `to_json` wrote.

        Raises:
            ValueError: not the shape of a judgement.
        """
        try:
            return cls(
                Verdict(raw["verdict"]),
                tuple(Reason(**reason) for reason in raw["reasons"]),
                tuple(Row(**from_plain(row)) for row in raw["rows"]),
                tuple(Reason(**flag) for flag in raw["flags"]),
                raw.get("decision"),
                raw.get("more_pairs"),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the shape of a judgement: {error!r}") from error
