"""A verdict with its reasons and numbers: what people read, records keep and exit codes follow from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

from changectl.core.measured import from_plain, to_plain
from changectl.core.units import format_moved, format_value

State = Literal["within", "breach", "not judged", "not measurable", "no data", "not defined", "unequal work"]


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

    @property
    def place(self) -> str:
        """Metric and level: `tpot_p50 at peak`."""
        return f"{self.metric} at {self.level}" if self.level else self.metric

    def __str__(self) -> str:
        moved = format_moved(self.before, self.after, self.change, self.unit)
        figures = f"{format_value(self.before, self.unit)} -> {format_value(self.after, self.unit)}"
        figures += f" ({moved})" if moved else ""
        return ", ".join(part for part in (f"{self.place}: {figures}", self.limit, self.state, self.note) if part)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one step. `flags` must be shown with it whatever the verdict is."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    rows: tuple[Row, ...] = ()
    flags: tuple[Reason, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values: no NaN, infinity as "unbounded"."""
        return {
            "verdict": self.verdict.value,
            "reasons": [asdict(reason) for reason in self.reasons],
            "rows": [to_plain(asdict(row)) for row in self.rows],
            "flags": [asdict(flag) for flag in self.flags],
        }

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
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not the shape of a judgement: {error!r}") from error
