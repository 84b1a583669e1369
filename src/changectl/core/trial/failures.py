"""Failed requests of a trial, pooled over levels and pairs: exact evidence, and the bound that so many requests allow.

Failures that fall together into one phase are worth fewer requests, so that one burst is not taken for the change's
doing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row
from changectl.core.measuring.metrics import METRICS, Guard, MetricRef
from changectl.core.measuring.proportions import Count, design_effect, fisher, total, upper, upper_difference
from changectl.core.trial.evidence import PER_LOOK
from changectl.core.trial.guards import Held, settled
from changectl.core.trial.order import Letter
from changectl.core.trial.phases import TrialPhase, level_names, of_letter, pairs_done
from changectl.core.units import format_points, format_share

FAILURES = METRICS["failures"]


@dataclass(frozen=True, slots=True)
class Failures:
    """What failed with either configuration, as seen, and what that is worth (see `proportions.design_effect`)."""

    before: Count
    after: Count
    effect: float = 1.0

    @property
    def more(self) -> float:
        """By how much the share grew."""
        return self.after.share - self.before.share

    def upper(self) -> float:
        """The bound of that growth."""
        return upper_difference(self.before.times(1 / self.effect), self.after.times(1 / self.effect), PER_LOOK)

    def lower(self) -> float:
        """The bound on the other side."""
        return -upper_difference(self.after.times(1 / self.effect), self.before.times(1 / self.effect), PER_LOOK)

    def upper_of_b(self) -> float:
        """The bound of the new configuration's own share."""
        return upper(self.after.times(1 / self.effect), PER_LOOK)

    def p_worse(self) -> float:
        """The one-sided p value against "no larger share fails now"."""
        return self._fisher(self.before, self.after) if self.more > 0 else 1.0

    def p_better(self) -> float:
        """The one-sided p value against "no smaller share fails now"."""
        return self._fisher(self.after, self.before) if self.more < 0 else 1.0

    def scaled(self, factor: float) -> Failures:
        """The same shares, of so many times the requests."""
        return Failures(self.before.times(factor), self.after.times(factor), self.effect)

    def _fisher(self, low: Count, high: Count) -> float:
        return fisher(low.times(1 / self.effect), high.times(1 / self.effect))


def failures_of(phases: Sequence[TrialPhase], levels: Collection[str]) -> Failures | None:
    """The failures at some levels; None: one of the configurations got no request there."""
    before, after = (
        total(count for level in _counts(phases, letter, levels) for count in level) for letter in ("A", "B")
    )
    if not before.n or not after.n:
        return None
    # That failures come in bursts on this host is told by all of its levels, also by those that are not asked for.
    every = level_names(phases)
    return Failures(before, after, design_effect(*(_counts(phases, letter, every) for letter in ("A", "B"))))


def _counts(phases: Sequence[TrialPhase], letter: Letter, levels: Collection[str]) -> list[list[Count]]:
    """Of each level the counts of its phases."""
    own = [phase.measurement for phase in of_letter(phases, letter)]
    return [[Count(level.failed, level.n) for one in own if (level := one.level(name)) is not None] for name in levels]


def against_margin(phases: Sequence[TrialPhase], levels: Collection[str], margin: float) -> Held:
    """The default guard: no more than `margin` (a share) more failures than before."""
    limit = f"less than {format_points(margin).lstrip('+')} more"
    found = failures_of(phases, levels)
    if found is None:
        return settled(MetricRef(FAILURES), limit, "no data", "no requests")

    def clear(now: Failures) -> bool:
        # Where no larger share failed, gross harm must be excluded; the bound is shown, for the margin itself takes
        # a thousand requests, which a slow model does not answer in hours.
        return now.upper() < (harm.FAILURE_POINTS if now.more <= 0 else margin)

    bound = f"no larger share failed; {format_points(found.upper())} are not excluded by {found.after.n:g} requests"
    note = bound if found.more <= 0 and clear(found) and found.upper() >= margin else ""
    return _held(found, None, limit, phases, clear=clear, beyond=found.more >= margin, note=note)


def against_limit(guard: Guard, phases: Sequence[TrialPhase], levels: Collection[str]) -> Held:
    """A limit of `slo` or `accept`, against the bound of the new configuration's own share."""
    found = failures_of(phases, levels)
    if found is None:
        return settled(MetricRef(FAILURES, None, guard.ref.level), str(guard), "no data", "no requests")

    def clear(now: Failures) -> bool:
        return guard.limit.holds(now.upper_of_b())

    beyond = not guard.limit.holds(found.after.share)
    note = "" if clear(found) or beyond else f"{format_share(found.upper_of_b())} is not excluded"
    return _held(found, guard.ref.level, str(guard), phases, clear=clear, beyond=beyond, note=note)


def row_of(found: Failures, level: str | None, limit: str, note: str = "") -> Row:
    """The row of failures, with the bounds of the difference."""
    before, after = found.before.share, found.after.share
    if found.effect > 1:
        burst = f"they came in bursts: {found.effect:.2g} of them count as one"
        note = f"{note}; {burst}" if note else burst
    return Row(
        FAILURES.name, FAILURES.unit, level, before, after, harm.change(before, after), limit, "open", note,
        low=found.lower(), high=found.upper(), bound=found.upper_of_b(),
    )  # fmt: skip


def _held(
    found: Failures,
    level: str | None,
    limit: str,
    phases: Sequence[TrialPhase],
    *,
    clear: Callable[[Failures], bool],
    beyond: bool,
    note: str = "",
) -> Held:
    done = max(1, pairs_done(phases))

    def decided(number: int, guards: int) -> bool:
        then = found.scaled(number / done)
        return clear(then) or (beyond and then.p_worse() * guards < PER_LOOK)

    return Held(row_of(found, level, limit, note), found.p_worse(), beyond, clear(found), decided)
