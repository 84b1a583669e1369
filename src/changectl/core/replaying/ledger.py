"""How often verdicts were wrong: each one with all that judged it since, and the rates that follow.

A verdict said "keep" or "revert". A change that was kept and does harm was missed; one that was taken back for harm and
does none was a false revert. Who says so: an operator, the watch of the same step, or the next baseline of the service,
which can say more of harm than of its absence: most often it says nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from changectl.core.measuring.proportions import Count, lower, upper

Said = Literal["keep", "revert"]
By = Literal["operator", "watch", "later_baseline"]

RIGHT = "right"
OPINIONS = (RIGHT, "wrong")  # what an operator may say
TAIL = 0.025  # on either side of the interval, which covers 95 %


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody or something made of a verdict.

    Attributes:
        by: who.
        right: whether the verdict was.
        why: in words.
        at: when that was recorded.
        run: the run that shows it.
    """

    by: By
    right: bool
    why: str
    at: str
    run: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One verdict that said something, and what was made of it since."""

    run: str
    step: int
    service: str
    at: str
    verdict: str
    said: Said
    opinions: tuple[Opinion, ...] = ()

    @property
    def name(self) -> str:
        """How commands call it."""
        return f"{self.run}/{self.step}"

    @property
    def right(self) -> bool | None:
        """The operator's last word; else wrong where anything says so; None: nobody has judged it."""
        told = [one.right for one in self.opinions if one.by == "operator"][-1:] or [one.right for one in self.opinions]
        return all(told) if told else None

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {**asdict(self), "right": self.right, "opinions": [asdict(one) for one in self.opinions]}


@dataclass(frozen=True, slots=True)
class Rate:
    """How often verdicts of one kind were wrong, of those that somebody judged.

    Attributes:
        wrong: so many were.
        judged: of so many.
        verdicts: so many there are, judged or not.
    """

    wrong: int
    judged: int
    verdicts: int

    @property
    def share(self) -> float | None:
        """The share; None: nobody judged one, and then nothing is known."""
        return self.wrong / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        """The exact interval of Clopper and Pearson (Biometrika 26, 1934, 404), 95 %; of nothing it is all there is."""
        count = Count(self.wrong, self.judged)
        return lower(count, TAIL), upper(count, TAIL)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        low, high = self.interval
        return {**asdict(self), "share": self.share, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Ledger:
    """All verdicts that said something, oldest first."""

    entries: tuple[Entry, ...]

    def rate(self, said: Said) -> Rate:
        """Of what was kept: the missed ones; of what was taken back for harm: the false reverts."""
        own = [entry for entry in self.entries if entry.said == said]
        judged = [entry.right for entry in own if entry.right is not None]
        return Rate(judged.count(False), len(judged), len(own))

    @property
    def unjudged(self) -> list[Entry]:
        """Those that nobody has judged yet."""
        return [entry for entry in self.entries if entry.right is None]
