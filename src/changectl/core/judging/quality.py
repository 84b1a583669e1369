"""What a change does to the answers of the quality prompts, held against what two starts of A differ by alone.

Greedy answers are not the same twice on real engines: batches, kernels and caches change the last bits. So B's answers
are compared with A's, and A's among themselves, prompt by prompt. Prompts that name an expected answer count as right
or wrong instead.

BREACH takes three keys: a sign test over the prompts (McNemar's exact test, where answers are right or wrong), at least
two points more, and that it is so in every phase of B. CLEAR takes a bound: five points more are excluded.
There a prompt counts once: an answer that is given again says nearly nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from changectl.core.judging.judgement import Reason, Row
from changectl.core.measuring.answers import Answers
from changectl.core.measuring.metrics import METRICS, Guard, Metric, MetricRef
from changectl.core.measuring.proportions import Count, design_effect, total
from changectl.core.trial.evidence import PER_LOOK
from changectl.core.trial.failures import Failures
from changectl.core.trial.guards import Held, settled
from changectl.core.trial.phases import TrialPhase
from changectl.core.units import format_points

DISAGREEMENT, WRONG = METRICS["disagreement"], METRICS["wrong_answers"]
NAMES = (DISAGREEMENT.name, WRONG.name)
LEAST_PROMPTS = 12  # if all of them change, that is evidence at one look also as one guard of thirty
SIZE = 0.02  # share by which more answers differ, or are wrong; less is no harm
GROSS = 0.05  # share that has to be excluded before a change is kept
# Where not one answer differs, so many prompts exclude it (upper bound of no failures: 1 - alpha ** (1 / n)).
CLEAR_PROMPTS = math.ceil(math.log(PER_LOOK) / math.log(1 - GROSS))
LEAST_STARTS = 2  # of A
ONE_START = "one start of the saved configuration does not tell by how much two of them differ"
MAY_CHANGE = (
    'the parameter may change answers, and no quality prompts were answered: add `"quality": true` to '
    f"{CLEAR_PROMPTS} requests of the workload, or more"
)

Shares = Mapping[str, tuple[float, float]]  # prompt -> its share with A, and with B


@dataclass(frozen=True, slots=True)
class _Seen:
    """One of the two figures over all prompts.

    Attributes:
        shares: by prompt.
        counts: prompts whose answers differ (or are wrong) and all prompts, of each phase of A, and of each of B; a
            prompt that was answered more than once counts by its share.
        steady: whether every phase of B is worse than every one of A.
    """

    shares: Shares
    counts: tuple[Sequence[Count], Sequence[Count]]
    steady: bool

    @property
    def failures(self) -> Failures:
        """The same as shares with bounds; answers that change together in one phase are worth fewer.

        Phases are averaged and not added: each asks the same prompts again.
        """
        before, after = (total(counts).times(1 / len(counts)) for counts in self.counts)
        return Failures(before, after, design_effect(*([counts] for counts in self.counts)))

    def p_worse(self) -> float:
        """The one-sided p value that B is no worse, by a sign test over the prompts."""
        return sign_test([after - before for before, after in self.shares.values()])


def sign_test(moved: Sequence[float]) -> float:
    """The exact one-sided p value against "as many moved up as down"; what did not move is left out."""
    up, down = sum(one > 0 for one in moved), sum(one < 0 for one in moved)
    n = up + down
    return float(sum(math.comb(n, number) for number in range(up, n + 1)) / 2**n)


def quality_of(phases: Sequence[TrialPhase], guards: Sequence[Guard], *, required: bool) -> list[Held]:
    """The figures of quality, held; empty: the workload has no quality prompts, and none are needed.

    Args:
        phases: with answers of both configurations.
        guards: the limits in force; one on a figure of quality takes the place of its default rule.
        required: the changed parameter may change answers, so that without a figure the verdict stays open.
    """
    prompts = common([phase.measurement.answers for phase in phases])
    graded = [prompt for prompt in prompts if phases[0].measurement.answers[prompt].wrong is not None]
    plain = [prompt for prompt in prompts if prompt not in set(graded)]
    named = {guard.ref.metric.name: guard for guard in guards}
    held = []
    for metric, own in ((DISAGREEMENT, plain), (WRONG, graded)):
        guard = named.get(metric.name)
        if len(own) >= LEAST_PROMPTS:
            held.append(_judged(metric, own, phases, guard, required=required))
        elif own or guard is not None:
            gap = guard is not None or (required and max(len(plain), len(graded)) < LEAST_PROMPTS)
            held.append(settled(MetricRef(metric), _limit(guard), "not measurable", too_few(len(own)), gap=gap))
    if not held and required:
        held.append(settled(MetricRef(DISAGREEMENT), _limit(None), "no data", MAY_CHANGE))
    return held


def too_few(count: int) -> str:
    """Why so many prompts are no evidence."""
    needed = f"{LEAST_PROMPTS} are needed to see harm, {CLEAR_PROMPTS} to exclude it"
    return f"{count} quality prompts were answered in every phase; {needed}"


def breached(row: Row) -> Reason:
    """The reason that a row beyond its limit is."""
    return Reason("quality" if row.metric in NAMES else "limit_breached", str(row))


def common(answers: Sequence[Mapping[str, Answers]]) -> list[str]:
    """The prompts that were answered in every phase."""
    first, *others = answers
    return [prompt for prompt in first if all(prompt in other for other in others)]


def _judged(
    metric: Metric, prompts: Sequence[str], phases: Sequence[TrialPhase], guard: Guard | None, *, required: bool
) -> Held:
    saved, new = (_answers(phases, letter, prompts) for letter in ("A", "B"))
    seen = (_disagreement if metric is DISAGREEMENT else _wrong)(prompts, saved, new)
    found, evidence = seen.failures, seen.p_worse()
    beyond = seen.steady and (found.more >= SIZE if guard is None else not guard.limit.holds(found.after.share))

    clear = not beyond and (found.upper() < GROSS if guard is None else guard.limit.holds(found.upper_of_b()))

    def decided(_: int, guards: int) -> bool:
        return clear or (beyond and evidence * guards < PER_LOOK)  # other prompts would help, and other pairs do not

    note = f"{len(prompts)} prompts"
    if not clear and not beyond:
        note += f"; {format_points(found.upper())} are not excluded"
        note += f" by fewer than {CLEAR_PROMPTS}" if guard is None and len(prompts) < CLEAR_PROMPTS else ""
    row = Row(
        metric.name, metric.unit, None, found.before.share, found.after.share, None, _limit(guard), "open", note,
        low=found.lower(), high=found.upper(), bound=found.upper_of_b(),
    )  # fmt: skip
    waits = _waits(metric, len(saved))
    proven = clear or (beyond and evidence < PER_LOOK)
    if not required and guard is None and (waits or not proven):
        return Held(replace(row, state="not judged", note=waits or note))  # nobody asked: it is shown, and stops nobody
    return Held(row, evidence, beyond, clear, decided, waits)


def _waits(metric: Metric, starts: int) -> str:
    return "" if metric is WRONG or starts >= LEAST_STARTS else ONE_START


def _limit(guard: Guard | None) -> str:
    return f"less than {format_points(GROSS).lstrip('+')} more" if guard is None else str(guard)


_Phases = Sequence[Mapping[str, Answers]]


def _answers(phases: Sequence[TrialPhase], letter: str, prompts: Sequence[str]) -> _Phases:
    return [
        {prompt: phase.measurement.answers[prompt] for prompt in prompts} for phase in phases if phase.letter == letter
    ]


def _disagreement(prompts: Sequence[str], saved: _Phases, new: _Phases) -> _Seen:
    """By how much answers of A differ from those of its other starts, and those of B from all of A."""
    others = [[other for other in saved if other is not one] for one in saved]
    before = [_against(prompts, one, rest) for one, rest in zip(saved, others, strict=True)]
    after = [_against(prompts, one, saved) for one in new]
    return _seen(prompts, (before, after))


def _against(prompts: Sequence[str], one: Mapping[str, Answers], others: _Phases) -> dict[str, float]:
    return {
        prompt: fmean(one[prompt].differ(other[prompt]) for other in others) if others else 0.0 for prompt in prompts
    }


def _wrong(prompts: Sequence[str], saved: _Phases, new: _Phases) -> _Seen:
    before, after = (
        [{prompt: (one[prompt].wrong or 0) / one[prompt].n for prompt in prompts} for one in phases]
        for phases in (saved, new)
    )
    return _seen(prompts, (before, after))


def _seen(prompts: Sequence[str], shares: tuple[Sequence[Mapping[str, float]], Sequence[Mapping[str, float]]]) -> _Seen:
    """Put together the share of each prompt in each phase; the counts are of prompts."""
    counts = tuple([Count(math.fsum(one[prompt] for prompt in prompts), len(prompts)) for one in own] for own in shares)
    by_prompt = {
        prompt: (fmean(one[prompt] for one in shares[0]), fmean(one[prompt] for one in shares[1])) for prompt in prompts
    }
    steady = min(count.share for count in counts[1]) > max(count.share for count in counts[0])
    return _Seen(by_prompt, (counts[0], counts[1]), steady)
