"""From the journal to the ledger: which verdicts said something, and who judged each of them since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.history.events import (
    MARK,
    MEASURE,
    SUMMARY_KINDS,
    VERDICT,
    WATCH,
    number_of,
    outcome,
    text_of,
    texts_of,
)
from changectl.core.history.runs import RunSummary, runs
from changectl.core.judging.conditions import differences
from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.judging.watch import KNOWN, is_gap
from changectl.core.ports import Event
from changectl.core.replaying.comparing import Side, compare
from changectl.core.replaying.ledger import OPINIONS, RIGHT, Entry, Ledger, Opinion, Said
from changectl.core.replaying.terms import Terms
from changectl.core.trial.order import Letter
from changectl.core.trial.record import recorded_phase
from changectl.core.units import format_duration

KINDS = (*SUMMARY_KINDS, MARK, outcome(MEASURE))
_WORSE = "with the change the service is grossly worse than before it"
_NOT_WORSE = "with the change nothing is grossly worse than before it"
_AS_BAD = "without the change the service is as bad as with it"
_WATCH_BROKE = "watch_"  # how the reasons begin for which a watch ends


def said_by(verdict: Mapping[str, Any]) -> Said | None:
    """What a recorded verdict said of the change; None: neither that it may stay nor that it does harm.

    So it is where the plan or a person had to decide, nothing was judged, or only the expected gain was not there.
    """
    try:
        judgement = Judgement.from_json(verdict)
    except ValueError:
        return None
    if judgement.undecided or judgement.verdict is Verdict.INVALID:
        return None
    if judgement.verdict is Verdict.REGRESSED:
        return "revert"
    return None if judgement.decision == "revert" else "keep"


def ledger(events: Sequence[Event], service: str | None = None) -> Ledger:
    """Every verdict with what judged it since.

    Args:
        events: of the kinds `KINDS`, of all runs, oldest first.
        service: only this one; None: all.
    """
    known = {run.run: run for run in runs(event for event in events if event.kind in SUMMARY_KINDS)}
    steps: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        if event.step and event.run in known and service in (None, known[event.run].service):
            steps.setdefault((event.run, event.step), []).append(event)
    found = [_Judged(known[run], step, own) for (run, step), own in steps.items()]
    return Ledger(tuple(_entries(found)))


@dataclass(frozen=True)
class _Judged:
    """One step with its events."""

    run: RunSummary
    step: int
    events: Sequence[Event]

    @property
    def verdict(self) -> Event | None:
        """The verdict that decided: of several instances' that which the step has."""
        decided = self.run.steps[self.step - 1].verdict
        verdicts = [event for event in self.events if event.kind == VERDICT]
        return next((event for event in reversed(verdicts) if event.body.get("verdict") == decided), None)

    def side(self, host: str, letter: Letter, terms: Terms) -> Side | None:
        """One configuration as it was measured on an instance; None: it was not, or is not readable."""
        bodies = [event.body for event in self.events if event.kind == outcome(MEASURE) and event.body.get("ok")]
        try:
            phases = [recorded_phase(body) for body in bodies if body.get("host") == host and body["phase"] == letter]
        except ValueError:
            return None
        return Side(f"{self.run.run}/{self.step}", letter, self.run.service, host, phases, terms) if phases else None


def _entries(steps: Sequence[_Judged]) -> Iterator[Entry]:
    for place, step in enumerate(steps):
        verdict = step.verdict
        said = said_by(verdict.body) if verdict else None
        if verdict is None or said is None:
            continue
        entry = Entry(
            run=step.run.run,
            step=step.step,
            service=step.run.service,
            at=verdict.at,
            verdict=text_of(verdict.body, "verdict"),
            said=said,
        )
        opinions = [*_watched(step, said), *_later(step, verdict, said, steps[place + 1 :]), *_marked(step)]
        yield replace(entry, opinions=tuple(opinions))


def _marked(step: _Judged) -> Iterator[Opinion]:
    for event in step.events:
        opinion = text_of(event.body, "opinion") if event.kind == MARK else ""
        if opinion in OPINIONS:
            who, why = text_of(event.body, "actor"), text_of(event.body, "why")
            told = f"{who}: {why}" if why else who
            yield Opinion("operator", opinion == RIGHT, told, event.at, event.run)


def _watched(step: _Judged, said: Said) -> Iterator[Opinion]:
    """The watch of what was to be kept: it broke, or enough live requests were seen to its end to know their share."""
    for event in step.events if said == "keep" else ():
        if event.kind != outcome(WATCH):
            continue
        body, host = event.body, text_of(event.body, "host")
        if text_of(body, "reason").startswith(_WATCH_BROKE):
            yield Opinion("watch", False, text_of(body, "message") or text_of(body, "reason"), event.at, event.run)
            continue
        requests, blind = number_of(body, "requests") or 0, is_gap("failures", texts_of(body, "not_watched"))
        if body.get("ok") and requests >= KNOWN and not blind:
            lasted = format_duration(number_of(body, "watched_seconds") or 0.0)
            text = f"{host}: nothing broke in {lasted} of watching, with {requests:.0f} live requests"
            yield Opinion("watch", True, text, event.at, event.run)


def _later(step: _Judged, verdict: Event, said: Said, later: Iterable[_Judged]) -> Iterator[Opinion]:
    """The next baseline of the instance, where it ran what the verdict left there, under the same conditions."""
    host = text_of(verdict.body, "host")
    try:
        terms = Terms.from_json(verdict.body["terms"])
    except (KeyError, ValueError):
        return
    # What a limit says of both alike is no difference; of a trade that was declared the limit is the price.
    terms = replace(terms, slo=(), accept=terms.accept if said == "keep" else ())
    before, new = step.side(host, "A", terms), step.side(host, "B", terms)
    following = (one for one in later if one.run.service == step.run.service and one.run.extends != step.run.run)
    next_one, after = next(((one, side) for one in following if (side := one.side(host, "A", terms))), (None, None))
    if before is None or new is None or next_one is None or after is None:
        return
    if differences((new if said == "keep" else before).phases[0].conditions, after.phases[0].conditions):
        return
    after = replace(after, phases=after.phases[:1])
    found = _of_kept(before, after, verdict) if said == "keep" else _of_taken_back(before, new, after)
    if found is not None:
        measured = next(event.at for event in next_one.events if event.kind == outcome(MEASURE))
        yield Opinion("later_baseline", *found, measured, next_one.run.run)


def _of_kept(before: Side, after: Side, verdict: Event) -> tuple[bool, str] | None:
    """Whether keeping was right, and why: gross harm speaks against any verdict, its absence for one that said so."""
    found = compare(before, after).judgement
    if found is not None and found.verdict is Verdict.REGRESSED:
        return False, f"{_WORSE}: {found.reasons[0]}"
    promised = text_of(verdict.body, "verdict")
    harmless = found is not None and found.verdict is Verdict.NO_GROSS_HARM
    return (True, _NOT_WORSE) if harmless and promised == Verdict.NO_GROSS_HARM else None


def _of_taken_back(before: Side, new: Side, after: Side) -> tuple[bool, str] | None:
    """Wrong where gross harm stayed when the change went, so that it was none of the change's; else nothing.

    A saved configuration that is as good as it was says nothing of the change, which may have been as good.
    """
    harm, since, more = (compare(*sides).judgement for sides in ((before, new), (before, after), (after, new)))
    if harm is None or since is None or more is None:
        return None
    gross = harm.verdict is Verdict.REGRESSED and since.verdict is Verdict.REGRESSED
    # With the change it was not grossly worse than it is without it, and no figure has recovered.
    as_bad = more.verdict is Verdict.NO_GROSS_HARM and _breaches(harm) <= _breaches(since)
    return (False, f"{_AS_BAD}: {since.reasons[0]}") if gross and as_bad else None


def _breaches(judgement: Judgement) -> set[tuple[str, str | None]]:
    return {(row.metric, row.level) for row in judgement.rows if row.state == "breach"}
