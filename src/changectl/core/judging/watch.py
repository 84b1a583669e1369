"""A change that is watched before it is kept: what of a live service is looked at, and what of it is harm.

What cannot be seen is said, and is neither harm nor a proof that there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core.judging.anytime import LOOKS, ShareTest
from changectl.core.judging.flagging import FLAGGED_FAILURES, of_share
from changectl.core.judging.growth import Held, growth
from changectl.core.judging.judgement import Reason
from changectl.core.lifecycle import WATCH_FAILURES, WATCH_LATENCY, WATCH_MEMORY, WATCH_PREEMPTIONS
from changectl.core.measuring.metrics import Guard
from changectl.core.measuring.proportions import Count, lower, upper
from changectl.core.telemetry.live_counts import BEYOND, slow
from changectl.core.units import format_duration, format_share

ALPHA = 0.01  # the chance of a false alarm of one instance's whole watch, shared out among what is tested
KNOWN = 200  # requests of the saved configuration whose share has a bound worth the name
MORE_FAILURES = 0.005  # beyond the saved configuration's share: the default margin of failures
MORE_PREEMPTIONS = 0.05
MORE_GIVEN_UP = 0.05
MOST = 0.9  # a limit beyond it is none that could be broken
LEAST = 1e-4  # no bet can be held against a share of 0: one request in ten thousand stands for none
_MB = 1e6
# How often is too often, only the saved configuration can tell.
_AS_BEFORE = (
    ("preemptions", WATCH_PREEMPTIONS, MORE_PREEMPTIONS, "were preempted"),
    ("given_up", WATCH_FAILURES, MORE_GIVEN_UP, "were given up by their clients"),
)


@dataclass(frozen=True, slots=True)
class Live:
    """What one look at a live service told.

    Attributes:
        memory: bytes that the service holds; None: not told.
        left: bytes that it could still take; None: not told.
        counts: since the process began, of the requests that ended: `failures`, `preemptions`, `given_up`, and by the
            name of each latency limit those that took longer. What the engine does not count is not there.
    """

    memory: float | None = None
    left: float | None = None
    counts: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareLimit:
    """The largest share of live requests that is no harm."""

    name: str  # as in Live.counts
    reason: str
    share: float
    words: str  # what the requests of that share did
    known: float = KNOWN  # requests of the saved configuration whose share is in it


@dataclass(frozen=True, slots=True)
class Harm:
    """What ends a watch: a stable word, and a sentence."""

    reason: str
    text: str


def limits(slo: Sequence[Guard], before: Live) -> list[ShareLimit]:
    """What shares are held against: the service's own limits, and never less than what the saved configuration had.

    Args:
        slo: the limits in force for the step.
        before: of the process on the saved configuration, over its whole life.
    """
    own = [guard.limit.value for guard in slo if guard.ref.metric.name == "failures"]
    found = [
        _limit("failures", WATCH_FAILURES, own or [FLAGGED_FAILURES], 0.0 if own else MORE_FAILURES, "failed", before)
    ]
    for name, guard in slow(slo).items():
        words = f"took longer than {name} {guard.limit} allows"
        found.append(_limit(name, WATCH_LATENCY, [BEYOND[guard.ref.statistic or ""]], 0.0, words, before))
    for name, reason, more, words in _AS_BEFORE:
        if before.counts.get(name, Count(0, 0)).n:
            found.append(_limit(name, reason, [0.0], more, words, before))
    return found


def _limit(name: str, reason: str, allowed: Sequence[float], more: float, words: str, before: Live) -> ShareLimit:
    known = before.counts.get(name, Count(0, 0))
    known = Count(min(known.failed, known.n), known.n)
    # Of a few requests only what is proven of their share counts, so that chance makes no limit wide.
    was = (upper if known.n >= KNOWN else lower)(known, ALPHA)
    return ShareLimit(name, reason, min(MOST, max(LEAST, *allowed, was + more)), words, known.n)


def is_gap(name: str, unwatched: Iterable[str]) -> bool:
    """Whether what could not be seen, in the words of `Watched.unwatched`, speaks of the share of that name."""
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in unwatched)


@dataclass
class Watched:
    """One instance while it is watched.

    Attributes:
        seconds: how long the whole watch lasts.
        limits: of the shares.
        before: bytes that the process on the saved configuration held; None: not known.
    """

    seconds: float
    limits: Sequence[ShareLimit]
    before: float | None
    tests: dict[str, ShareTest] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    left: float | None = None
    _last: dict[str, Count] = field(default_factory=dict)
    _anew: dict[str, int] = field(default_factory=dict)  # how often counters fell although the process lives

    @property
    def alpha(self) -> float:
        """Of each test."""
        return ALPHA / (len(self.limits) + 1)

    def see(self, elapsed: float, live: Live) -> Harm | None:
        """Take one look into account.

        Args:
            elapsed: seconds since the watch began.
            live: what it told.
        """
        return next((harm for harm in (*self._shares(live), self._memory(elapsed, live)) if harm), None)

    def _shares(self, live: Live) -> Iterator[Harm | None]:
        for limit in self.limits:
            now = live.counts.get(limit.name)
            if now is None:
                continue
            last = self._last.get(limit.name)
            self._last[limit.name] = now
            if last is None:
                continue  # the first look
            if now.n < last.n or now.failed < last.failed:
                self._anew[limit.name] = self._anew.get(limit.name, 0) + 1
                continue
            test = self.tests.get(limit.name) or ShareTest(limit.share, self.alpha)
            more = now.n - last.n  # one request may be preempted several times, and before it ends
            self.tests[limit.name] = test = test.after(Count(min(more, now.failed - last.failed), more))
            yield Harm(limit.reason, self._share_text(limit, test)) if test.beyond else None

    def too_short(self) -> Harm | None:
        """At the end: a share beyond its limit that too few looks could have shown to be harm; or None."""
        for limit in self.limits:
            test = self.tests.get(limit.name)
            if test is not None and test.looks < LOOKS and test.seen.share > limit.share:
                why = f"in {test.looks} looks, too few to tell it from chance; write a longer `watch`"
                return Harm(limit.reason, f"{self._share_text(limit, test)}: {why}")
        return None

    def _share_text(self, limit: ShareLimit, test: ShareTest) -> str:
        share, allowed = format_share(test.seen.share), format_share(limit.share)
        return f"{share} of {test.seen.n:.0f} live requests {limit.words}; up to {allowed} would be no harm"

    def _memory(self, elapsed: float, live: Live) -> Harm | None:
        if live.memory is None:
            return None
        self.held.append(Held(elapsed, live.memory))
        self.left = live.left
        seen = growth(self.held, self.seconds, live.left)
        if seen is None or not seen.harms(self.alpha, self.before, self.seconds):
            return None
        grown = f"its memory grows by {seen.slope * 60 / _MB:.3g} MB a minute and does not settle"
        end = format_duration(float(f"{seen.used_up or 0.0:.2g}"))
        return Harm(WATCH_MEMORY, f"{grown} ({seen.held / _MB:.0f} MB by now): at that rate what is left lasts {end}")

    @property
    def failures(self) -> Count | None:
        """The live requests that ended, and those of them that failed; None: the engine does not count them."""
        test = self.tests.get("failures")
        return None if test is None else test.seen

    def flags(self) -> list[Reason]:
        """What has to be shown whatever came of the watch."""
        seen = self.failures
        return [] if seen is None else of_share(seen, "live requests", "while it was watched")

    def unwatched(self) -> list[str]:
        """What could not be seen, in words; at the end of the watch."""
        blind = [limit.name for limit in self.limits if limit.name not in {*self.tests, *self._anew}]
        idle = [name for name, test in self.tests.items() if not test.seen.n]
        told = [f"{', '.join(blind)} (the engine does not count it)"] if blind else []
        told += [f"{', '.join(idle)} (no request came)"] if idle else []
        fell = [f"{name} (its counters fell {often} times: what came then is not counted)"
                for name, often in self._anew.items()]  # fmt: skip
        told += [", ".join(fell)] if fell else []
        few = [name for name, test in self.tests.items() if test.seen.n and test.looks < LOOKS]
        told += [f"{', '.join(few)} (requests came in fewer than {LOOKS} looks)"] if few else []
        new = [
            f"{one.name} ({one.known:.0f} requests)"
            for one in self.limits
            if one.name in self.tests and one.known < KNOWN
        ]
        told += [f"what was usual before the change, of {', '.join(new)}"] if new else []
        if not self.held:
            told.append("memory (the host did not tell what the service holds)")
        elif self.left is None:
            told.append("memory (the host did not tell what is left)")
        elif growth(self.held, self.seconds, self.left) is None:
            told.append("memory (too few looks)")
        return told

    @property
    def nothing_but_answers(self) -> bool:
        """Whether neither counters nor memory could be seen."""
        return not any(test.seen.n for test in self.tests.values()) and (not self.held or self.left is None)
