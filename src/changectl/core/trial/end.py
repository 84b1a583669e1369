"""What follows from a look: keep, revert, leave it to the plan for lack of evidence, or go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from changectl.core.judging import harm
from changectl.core.judging.judgement import Judgement, Reason, Row, Verdict
from changectl.core.judging.quality import breached
from changectl.core.trial.forecast import more_pairs, places, told
from changectl.core.trial.guards import Held
from changectl.core.trial.targets import Target


@dataclass(frozen=True, slots=True)
class Look:
    """Where a trial stands.

    Attributes:
        done: pairs that were run.
        last: pairs after which it ends.
        due: whether the evidence is to be looked at now.
        waits: why it decides nothing as yet; empty: it does.
        fresh: whether the service was started for every phase.
    """

    done: int
    last: int
    due: bool
    waits: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a look sees.

    Attributes:
        rows: every guard, with its state.
        held: the guards as they were held, in the same order; rows beyond them are gross harm of its own.
        targets: the expected gains; none: the change is to be neutral.
        harms: what needs no statistics.
        gaps: what leaves the verdict open beside the rows.
        unequal: why whole answers and throughput were not judged, by level.
    """

    rows: Sequence[Row]
    held: Sequence[Held]
    targets: Sequence[Target]
    harms: Sequence[Reason]
    gaps: Sequence[Reason]
    unequal: Mapping[str, str]

    @property
    def undecided(self) -> list[tuple[Row, Callable[[int], bool] | None]]:
        """The figures that are still open, and what tells whether so many pairs decide each."""
        guards = sum(one.evidence is not None for one in self.held)
        found: list[tuple[Row, Callable[[int], bool] | None]] = []
        for row, one in zip(self.rows, self.held, strict=False):
            if row.state == "open":
                decided = one.decided_by
                found.append((row, None if decided is None else partial(_with_guards, decided, guards)))
        return [*found, *((one.row, one.decided_by) for one in self.targets if one.row.state == "open")]


def _with_guards(decided: Callable[[int, int], bool], guards: int, pairs: int) -> bool:
    return decided(pairs, guards)


def concluded(evidence: Evidence, look: Look) -> Judgement:
    """The verdict and what follows from it, without rows and flags."""
    harms = [*evidence.harms, *(breached(row) for row in evidence.rows if row.state == "breach")]
    if harms:
        return Judgement(Verdict.REGRESSED, tuple(harms), decision="revert")
    if not look.due:
        return going_on(evidence, look)
    if blind := _blind(evidence, look):
        return blind
    if not look.fresh:
        text = "nothing was grossly worse; more is not to be told where the service was not started for every phase"
        return Judgement(Verdict.NO_GROSS_HARM, (Reason("no_gross_harm", text),), decision="policy")
    if not look.waits and all(row.state == "clear" for row in evidence.rows if row.state in ("clear", "open")):
        kept = _by_promise(evidence)
        if kept is not None:
            return kept
    return _left_open(evidence, look) if look.done >= look.last else going_on(evidence, look)


def _blind(evidence: Evidence, look: Look) -> Judgement | None:
    """The end of a trial that misses what it has to judge: phases to come would not bring that back."""
    judged = [row for row in evidence.rows if _was_judged(row, look) and row.metric not in harm.NO_EVIDENCE_OF_SPEED]
    if evidence.unequal and not judged:
        reasons = [Reason("unequal_work", text) for text in evidence.unequal.values()]
        return Judgement(Verdict.INVALID, tuple(reasons), decision="revert")
    rows = [*evidence.rows, *(target.row for target in evidence.targets)]
    gaps = [*evidence.gaps, *(Reason("no_evidence", str(row)) for row in rows if row.gap)]
    if not judged and not gaps:
        gaps = [Reason("nothing_judged", "no guarded figure could be judged")]
    return Judgement(Verdict.INCONCLUSIVE, tuple(gaps), decision="policy") if gaps else None


def _was_judged(row: Row, look: Look) -> bool:
    return row.state in ("clear", "open") or (row.state == "not judged" and not look.fresh)


def _by_promise(evidence: Evidence) -> Judgement | None:
    """The end where every guard holds; None: whether the gain is there is still open."""
    count = sum(row.state == "clear" for row in evidence.rows)
    clear = Reason("within_limits", f"{count} figures are within their limits, with what the noise allows")
    if not evidence.targets:
        return Judgement(Verdict.UNCHANGED, (clear,), decision="keep")
    rows = [target.row for target in evidence.targets]
    if flat := [row for row in rows if row.state == "flat"]:
        reasons = [Reason("no_gain", str(row)) for row in flat]
        return Judgement(Verdict.UNCHANGED, (*reasons, clear), decision="revert")
    if any(row.state != "gain" for row in rows):
        return None
    return Judgement(Verdict.IMPROVED, (*(Reason("gain", str(row)) for row in rows), clear), decision="keep")


def _left_open(evidence: Evidence, look: Look) -> Judgement:
    """The end of the effort."""
    undecided = evidence.undecided
    rows = [row for row, _ in undecided]
    text = look.waits or f"{len(rows)} of {len(evidence.rows) + len(evidence.targets)} figures are open: {places(rows)}"
    more = more_pairs([decided for _, decided in undecided], look.done)
    reasons = (Reason("undecided", f"after {look.done} of {look.last} pairs: {text}"), told(more, look.done, rows))
    return Judgement(Verdict.INCONCLUSIVE, reasons, decision="policy", more_pairs=more)


def going_on(evidence: Evidence | None, look: Look) -> Judgement:
    """Undecided: the next phase follows."""
    undecided = evidence.undecided if evidence else []
    why = look.waits or f"open: {places([row for row, _ in undecided])}"
    reason = Reason("go_on", f"undecided after {look.done} of {look.last} pairs: {why}")
    # Whatever cuts the trial off before its next look, it is told what would have decided it.
    more = more_pairs([decided for _, decided in undecided], look.done) if evidence else None
    return Judgement(Verdict.INCONCLUSIVE, (reason,), decision="go_on", more_pairs=more)
