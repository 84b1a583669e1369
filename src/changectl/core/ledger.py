"""How often verdicts were wrong: each one with all that judged it since, and the rates that follow.

A verdict said "keep" or "revert". A change that was kept and does harm was missed; one that was taken back and does
none was a false revert. Who says so: an operator, the watch of the same step, or the next baseline of the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from changectl.core.comparing import Side, compare
from changectl.core.conditions import differences
from changectl.core.history_events import MARK, MEASURE, SUMMARY_KINDS, VERDICT, WATCH, number_of, outcome, text_of
from changectl.core.history_runs import RunSummary, runs
from changectl.core.judgement import Judgement, Verdict
from changectl.core.ports import Event
from changectl.core.proportions import Count, lower, upper
from changectl.core.terms import Terms
from changectl.core.trial_order import Letter
from changectl.core.trial_record import recorded_phase
from changectl.core.units import format_duration

Said = Literal["keep", "revert"]
By = Literal["operator", "watch", "later_baseline"]

RIGHT, WRONG = OPINIONS = ("right", "wrong")  # what an operator may say
KINDS = (*SUMMARY_KINDS, MARK, outcome(MEASURE))
TAIL = 0.025  # on either side of the interval, which covers 95 %
_SHOWN = {
    ("keep", True): "with the change the service is grossly worse than before it",
    ("keep", False): "with the change nothing is grossly worse than before it",
    ("revert", True): "without the change the service is grossly worse, too",
    ("revert", False): "without the change nothing is grossly worse than before it",
}
_WATCH_BROKE = "watch_"  # how the reasons begin for which a watch ends


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
        """Of what was kept: the missed ones; of what was taken back: the false reverts."""
        own = [entry for entry in self.entries if entry.said == said]
        judged = [entry.right for entry in own if entry.right is not None]
        return Rate(judged.count(False), len(judged), len(own))

    @property
    def unjudged(self) -> list[Entry]:
        """Those that nobody has judged yet."""
        return [entry for entry in self.entries if entry.right is None]


def said_by(verdict: Mapping[str, Any]) -> Said | None:
    """What a recorded verdict said of the change; None: it left it to the plan or a person, or judged nothing."""
    try:
        judgement = Judgement.from_json(verdict)
    except ValueError:
        return None
    if judgement.undecided or judgement.verdict is Verdict.INVALID:
        return None
    turned_down = judgement.verdict is Verdict.REGRESSED or judgement.decision == "revert"
    return "revert" if turned_down else "keep"


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
    """The watch of what was to be kept: it broke, or real requests were seen to its end."""
    for event in step.events if said == "keep" else ():
        if event.kind != outcome(WATCH):
            continue
        body, host = event.body, text_of(event.body, "host")
        if text_of(body, "reason").startswith(_WATCH_BROKE):
            yield Opinion("watch", False, text_of(body, "message") or text_of(body, "reason"), event.at, event.run)
        elif body.get("ok") and (requests := number_of(body, "requests")):
            lasted = format_duration(number_of(body, "watched_seconds") or 0.0)
            text = f"{host}: nothing broke in {lasted} of watching, with {requests:.0f} live requests"
            yield Opinion("watch", True, text, event.at, event.run)


def _later(step: _Judged, verdict: Event, said: Said, later: Iterable[_Judged]) -> Iterator[Opinion]:
    """The next baseline of the instance, where it ran what the verdict left there, under the same conditions.

    Of a kept change: is the service as good with it as it was before? Of one taken back: did the harm go with it?
    """
    host = text_of(verdict.body, "host")
    try:
        terms = Terms.from_json(verdict.body["terms"])
    except (KeyError, ValueError):
        return
    before, left = step.side(host, "A", terms), step.side(host, "B" if said == "keep" else "A", terms)
    following = (one for one in later if one.run.service == step.run.service and one.run.extends != step.run.run)
    next_one, after = next(((one, side) for one in following if (side := one.side(host, "A", terms))), (None, None))
    if before is None or left is None or next_one is None or after is None:
        return
    if differences(left.phases[0].conditions, after.phases[0].conditions):
        return
    found = compare(before, replace(after, phases=after.phases[:1])).judgement
    if found is None or found.verdict not in (Verdict.REGRESSED, Verdict.NO_GROSS_HARM):
        return
    worse = found.verdict is Verdict.REGRESSED
    because = f": {found.reasons[0]}" if worse else ""
    measured = next(event.at for event in next_one.events if event.kind == outcome(MEASURE))
    yield Opinion("later_baseline", not worse, f"{_SHOWN[said, worse]}{because}", measured, next_one.run.run)
