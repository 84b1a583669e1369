"""`changectl extend RUN`: go on with a trial that ended without a verdict. Its error rates are spent once, not anew.

The new run opens with the phases on record, goes on in the order ABBA, and takes only the looks that are left of six.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from changectl.core.errors import Refused
from changectl.core.history.events import MEASURE, RUN_OPENED, VERDICT, mapping_of, outcome, text_of
from changectl.core.history.runs import OPEN, RunSummary
from changectl.core.judging.judgement import Verdict
from changectl.core.ports import Event
from changectl.core.trial.order import MOST_PAIRS, looks
from changectl.core.trial.record import RecordedTrial, recorded_trial, trial_runs
from changectl.workflow.turns import Longer

LONGEST_AGO = 24 * 3600.0  # seconds since the last phase; an older host is not the same one any more
CLOCK_STEP = 60.0  # seconds that a controller's clock may be corrected by
NO_TRIAL, DECIDED, NOT_BACK = "no_trial", "decided", "not_back"
TOO_OLD, NO_PAIRS_LEFT, GONE_ON, PLAN_DIFFERS = "too_old", "no_pairs_left", "extended_already", "plan_differs"

Read = Callable[[str], Sequence[Event]]  # the events of a run


@dataclass(frozen=True)
class Extension:
    """A trial that goes on.

    Attributes:
        run: the run that it goes on with.
        plan: the file of its plan, as it was named then.
        opened: how that run was opened.
        trials: instance -> its trial.
    """

    run: str
    plan: str
    opened: Mapping[str, object]
    trials: Mapping[str, Longer]


def what_to_extend(run: str, read: Read, runs: Sequence[RunSummary], now: str, more: int | None) -> Extension:
    """Read a run's trial, and that of all runs which it went on with.

    Args:
        run: the run.
        read: the record.
        runs: all runs, oldest first.
        now: the time.
        more: how many pairs it is to get; None: as many as its last look said would decide it.

    Raises:
        Refused: it has no trial that can go on; the text says why, and what to do instead.
    """
    known = next((one for one in runs if one.run == run), None)
    events = read(run)
    opened = next((event.body for event in events if event.kind == RUN_OPENED), None)
    if known is None or opened is None:
        raise Refused(f"run {run} has no beginning in the record", reason="run_unknown")
    _require_end(known)
    host = _undecided(known, events)
    _require_last(run, read, runs)
    trial = _recorded(run, [event for name in trial_runs(run, runs) for event in read(name)], host)
    _require_fresh(run, events, now)
    return Extension(run, known.plan, opened, {host: Longer(trial, _pairs(run, trial, more))})


def _recorded(run: str, events: Sequence[Event], host: str) -> RecordedTrial:
    """The trial. Raises Refused: it has no pairs, or another version recorded it in a shape that is not read here."""
    try:
        trial = recorded_trial(events, host)
    except ValueError as error:
        text = f"what run {run} measured cannot be read by this version ({error})"
        raise Refused(f"{text}: apply the plan anew", reason=NO_TRIAL) from error
    if trial is None:
        text = f"run {run} measured no pairs of phases that more of them could join"
        raise Refused(f"{text}: apply the plan with `effort: standard`", reason=NO_TRIAL)
    return trial


def _require_end(known: RunSummary) -> None:
    run = known.run
    if known.outcome == OPEN:
        raise Refused(f"run {run} has no end: changectl recover {run}", reason="unfinished_run")
    if known.reverts or known.incident or known.calibrates or len(known.steps) != 1:
        what = _no_trial(known)
        raise Refused(f"run {run} {what}: there is no trial to go on with", reason=NO_TRIAL)
    if known.needs_person or (known.steps[0].changed_something and not known.reverted_by):
        text = f"the saved configuration does not run after run {run} ({known.outcome})"
        raise Refused(f"{text}: take it back first: changectl revert {run}", reason=NOT_BACK)


def _no_trial(known: RunSummary) -> str:
    if known.reverts:
        return "takes another run back"
    if known.incident:
        return "measured nothing, in an incident"
    if known.calibrates:
        return "changed nothing, to learn the noise of its hosts"
    return f"has {len(known.steps)} steps; a trial of one can go on"


def _undecided(known: RunSummary, events: Sequence[Event]) -> str:
    """The instance whose trial has no verdict. Raises Refused: there is none."""
    verdicts = [event.body for event in events if event.kind == VERDICT]
    if not verdicts:
        text = f"run {known.run} came to no verdict ({known.end_reason}): there is no trial to go on with"
        raise Refused(f"{text}: changectl apply {known.plan}", reason=NO_TRIAL)
    last = verdicts[-1]
    if last.get("verdict") != Verdict.INCONCLUSIVE:
        text = f"run {known.run} is decided: {text_of(last, 'verdict')}"
        raise Refused(f"{text}. More phases would not be evidence, but a second try", reason=DECIDED)
    return text_of(last, "host")


def _require_last(run: str, read: Read, runs: Sequence[RunSummary]) -> None:
    """Raises Refused where a later run went on with it: two ends of one trial would be a choice between them."""
    for later in runs:
        if later.extends == run and any(event.kind == outcome(MEASURE) for event in read(later.run)):
            hint = f"see changectl show {later.run}"
            raise Refused(f"run {later.run} has gone on with run {run} already: {hint}", reason=GONE_ON)


def _require_fresh(run: str, events: Sequence[Event], now: str) -> None:
    measured = [event.at for event in events if event.kind == outcome(MEASURE)]
    ago = (datetime.fromisoformat(now) - datetime.fromisoformat(measured[-1])).total_seconds()
    if ago < -CLOCK_STEP:
        text = f"run {run} measured {-ago / 3600:.1f} h from now, by this controller's clock: it was set back since"
        raise Refused(f"{text}, so nobody knows how long ago that was: apply the plan anew", reason=TOO_OLD)
    if ago > LONGEST_AGO:
        text = f"run {run} measured {ago / 3600:.0f} h ago, and a host does not stay the same for longer than"
        raise Refused(f"{text} {LONGEST_AGO / 3600:.0f} h: apply the plan anew", reason=TOO_OLD)


def _pairs(run: str, trial: RecordedTrial, more: int | None) -> int:
    """How many pairs it gets. Raises Refused where that makes more than a trial can have."""
    left = MOST_PAIRS - trial.pairs
    if left < 1 or not looks(MOST_PAIRS, trial.looks):
        text = f"run {run} has had all that a trial can have ({trial.pairs} pairs, {len(trial.looks)} looks)"
        raise Refused(f"{text}: widen a limit (accept), measure longer phases, or change more", reason=NO_PAIRS_LEFT)
    wanted = trial.more_pairs if more is None else more
    anyway = f"--pairs N (at most {left}) goes on anyway"
    if wanted is None:
        raise Refused(f"no number of pairs would decide run {run}, as far as it can be told: {anyway}", reason=DECIDED)
    if wanted > left:
        text = f"{wanted} more pairs with the {trial.pairs} of run {run} are more than the {MOST_PAIRS} of a trial"
        raise Refused(f"{text}: {anyway}", reason=NO_PAIRS_LEFT)
    return wanted


def require_same_order(extension: Extension, digest: str, parts: Mapping[str, str]) -> None:
    """Hold what is to be applied now against what was applied then.

    Args:
        extension: the trial.
        digest: of the plan and all that it depends on.
        parts: its parts, by name (see `parts_of`).

    Raises:
        Refused: it is not the same; the parts that differ are named.
    """
    if digest == extension.opened.get("plan_digest"):
        return
    then = mapping_of(extension.opened, "covers")
    moved = sorted(name for name in {*then, *parts} if then.get(name) != parts.get(name))
    named = ", ".join(moved) if then and moved else "the plan or something that it names"
    text = f"not the same as in run {extension.run}: {named}"
    raise Refused(f"{text}. Other phases are another trial: changectl apply {extension.plan}", reason=PLAN_DIFFERS)
