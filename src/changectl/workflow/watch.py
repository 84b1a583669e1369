"""The watch before a change is kept: the dead-man stays armed, and what the service does live decides.

Whoever dies meanwhile, the change was not kept: its hosts bring the saved configuration back by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from changectl.core.errors import ContactLost
from changectl.core.incident import failure_line
from changectl.core.judging.judgement import HardEvent
from changectl.core.judging.watch import Live, Watched, limits
from changectl.core.lifecycle import (
    DIED,
    WATCH_DEVICE,
    WATCH_FAILURES,
    WATCH_LOG,
    WATCH_MEMORY,
    WATCH_PROCESS,
)
from changectl.core.measuring.metrics import Guard
from changectl.core.observed import HostFacts, Status
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.events import Look, hard_events
from changectl.workflow.not_kept import NotKept
from changectl.workflow.recorder import Deed
from changectl.workflow.trial import Acceptance, Trial
from changectl.workflow.watch_look import before_the_change, counted, live, real_answer, without

LOOK = 1.0  # seconds between two looks at process and log
EVERY = 5.0  # seconds between two real answers, and between two looks at the engine's counters and at the host
# The causes first; every other event is the process's.
_EVENTS = {"oom_kill": WATCH_MEMORY, "gpu_out_of_memory": WATCH_MEMORY, "gpu_error": WATCH_DEVICE,
           "device_error": WATCH_DEVICE}  # fmt: skip
_MB = 1e6


def watch_step(tried: Sequence[tuple[Attempt, Trial]], acceptance: Acceptance) -> None:
    """Watch instances that run on a change which is to be kept, all at the same time, for as long as the step says.

    Raises:
        NotKept: what broke, by the reason; or the process that was judged does not run any more.
        Interrupted, LeaseLost: somebody or something else ended the run.
        HostCallError, ContactLost: a host could not be looked at; that is no guard that held.
    """
    seconds = acceptance.step.watch
    if seconds is None or not tried:
        return
    tools = tried[0][0].tools
    with ExitStack() as records:
        guards = [_begin(attempt, trial, acceptance, seconds, records) for attempt, trial in tried]
        begun = tools.clock.monotonic()
        while (elapsed := tools.clock.monotonic() - begun - sum(one.silent for one in guards)) < seconds:
            tools.interrupts.check()
            for one in guards:
                one.look(elapsed)
            told = "; ".join(str(one) for one in guards)
            tools.reporter.waiting(f"watching it live: {told}", elapsed=elapsed, expected=seconds)
            tools.clock.sleep(LOOK)
        for one in guards:
            one.last_look(seconds)
    for one in guards:
        blind = "; ".join(one.unseen())
        alone = (
            ": only its process, its log and its own answers could be seen" if one.watched.nothing_but_answers else ""
        )
        unseen = f"; not watched: {blind}" if blind else ""
        tools.reporter.note(f"{one}, in {format_duration(seconds)} of watching nothing broke{alone}{unseen}")


def _begin(attempt: Attempt, trial: Trial, acceptance: Acceptance, seconds: float, records: ExitStack) -> _Instance:
    target = attempt.target
    slo = acceptance.plan.guards(target.service.slo, acceptance.step)
    before = before_the_change(attempt.contact, slo)
    shares = limits(slo, before)
    body = {"host": target.name, "seconds": seconds, "every": EVERY, "limits": {one.name: one.share for one in shares}}
    outcome = records.enter_context(attempt.recorder.acting("watch", body))
    outcome.update(body)
    first = target.status()
    if first.identity is None or first.identity != trial.process:
        raise NotKept(DIED, f"{target.name}: the process that was judged does not run any more")
    host = HostFacts.read(target.host_answer())
    return _Instance(attempt, slo, Look(first, host), Watched(seconds, shares, before.memory), outcome, first.cursor)


@dataclass
class _Instance:
    """One instance while it is watched."""

    attempt: Attempt
    slo: Sequence[Guard]
    first: Look
    watched: Watched
    outcome: Deed
    cursor: str | None
    answers: int = 0
    lost: int = 0
    asked: float = -EVERY
    silent: float = 0.0  # seconds without contact
    unread: list[str] = field(default_factory=list)  # of the log: lines that no look at the host went with yet
    _patient_until: float | None = None

    def __str__(self) -> str:
        parts = ["1 answer" if self.answers == 1 else f"{self.answers} answers"]
        if (seen := self.watched.failures) is not None:
            parts.append(f"{seen.n:.0f} requests, {seen.failed:.0f} failed")
        if self.watched.held:
            parts.append(f"{self.watched.held[-1].memory / _MB:.0f} MB")
        return f"{self.attempt.target.name}: {', '.join(parts)}"

    def last_look(self, elapsed: float) -> None:
        """The look that the end of the watch needs: at all of it, and not before the host is reached."""
        self.asked = -math.inf
        while not self.look(elapsed):
            self.attempt.tools.interrupts.check()
        if harm := self.watched.too_short():
            raise self._broke(harm.reason, elapsed, harm.text)

    def look(self, elapsed: float) -> bool:
        """One look; a host that is not reached is asked again for as long as its dead-man waits.

        Returns:
            Whether it was looked at; otherwise it is reached again by now.
        """
        began = self.attempt.tools.clock.monotonic()  # a call that is lost was silent itself, before it says so
        try:
            self._look(elapsed)
            self._patient_until = None
            return True
        except ContactLost as error:
            self._patient_until = self._patient_until or self.attempt.lease.patience()
            if not self.attempt.lease.wait_for_contact(error, self._patient_until):
                raise
            self.silent += self.attempt.tools.clock.monotonic() - began
            return False
        finally:
            self.outcome.update(self._record(elapsed))

    def _look(self, elapsed: float) -> None:
        target, first = self.attempt.target, self.first.status
        status = target.status(self.cursor)
        self.cursor = status.cursor or self.cursor
        self.unread += status.log
        broken = status.identity != first.identity or (status.restarts or 0) > (first.restarts or 0)
        due = elapsed - self.asked >= EVERY
        host = HostFacts.read(target.host_answer(since=first.now)) if broken or due else None
        self._require_sound(status, host, elapsed, broken=broken)
        seen = Live(status.process.rss_bytes if status.process else None, self.watched.left)
        if host is not None:
            self.asked = elapsed
            answer = real_answer(target, self.attempt.tools.clock)
            self.lost += answer.lost
            if answer.wrong:
                raise self._broke(WATCH_FAILURES, elapsed, f"it gave no real answer: {answer.wrong}")
            self.answers += 1
            seen = live(status, host, without(counted(target, answer.pages, self.slo), self.answers))
        if harm := self.watched.see(elapsed, seen):
            raise self._broke(harm.reason, elapsed, harm.text)

    def _require_sound(self, status: Status, host: HostFacts | None, elapsed: float, *, broken: bool) -> None:
        """Raises NotKept where the process is another one, memory ran out, a device failed, or the log tells of it."""
        line = failure_line(status.log, self.attempt.target.engine.failure_lines)
        because = f": {line}" if line else ""
        events: tuple[HardEvent, ...] = ()
        if host is not None:
            whole = status.model_copy(update={"log": self.unread})
            events, self.unread = hard_events(self.first, Look(whole, host), "B", ""), []
        for event in sorted(events, key=lambda event: event.code not in _EVENTS):
            raise self._broke(_EVENTS.get(event.code, WATCH_PROCESS), elapsed, f"{event.text}{because}")
        if broken:
            raise self._broke(WATCH_PROCESS, elapsed, f"it was restarted{because}")
        if line:
            raise self._broke(WATCH_LOG, elapsed, f"its log shows a known failure{because}")

    def _broke(self, reason: str, elapsed: float, what: str) -> NotKept:
        into = format_duration(round(elapsed))
        return NotKept(reason, f"{self.attempt.target.name}: {into} into the watch, {what}")

    def unseen(self) -> list[str]:
        """What could not be seen, in words."""
        return self.watched.unwatched() + ([f"{self.silent:.0f} s without contact"] if self.silent >= 1 else [])

    def _record(self, elapsed: float) -> dict[str, Any]:
        seen = self.watched.failures
        return {
            "watched_seconds": round(elapsed, 1),
            "answers": self.answers,
            "lost_answers": self.lost,
            "requests": None if seen is None else seen.n,
            "failed": None if seen is None else seen.failed,
            "memory_bytes": self.watched.held[-1].memory if self.watched.held else None,
            "not_watched": self.unseen(),
            "flags": [asdict(flag) for flag in self.watched.flags()],
        }
