"""Waiting until the model has really loaded: a deadline whose source is named, an end as soon as it is hopeless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from changectl.core.engine import Cause, Pages
from changectl.core.observed import Status
from changectl.core.ports import Clock, Reporter
from changectl.workflow.loading import Loading
from changectl.workflow.target import Target

POLL = 0.25  # seconds between two looks
DOWN_FOR = 3.0  # seconds without a process before a start counts as failed
LAST_WORDS = 2.0  # seconds in which a failing engine may still name a deeper cause
DEFAULT_DEADLINE = 600.0  # seconds, where neither the service nor an earlier start tells
LEAST_DEADLINE = 60.0
LOG_KEPT = 400  # lines


@dataclass(frozen=True, slots=True)
class Deadline:
    """How long a start may take, and who says so."""

    seconds: float
    source: str


def deadline_for(target: Target, last_load: float | None) -> Deadline:
    """The service file's word first, then five times the last measured load, then a default; never beyond max_out."""
    wanted, longest = _wanted(target, last_load), target.service.limits.max_out
    if longest is not None and longest < wanted.seconds:
        return Deadline(float(longest), "the service file (limits: max_out)")
    return wanted


def _wanted(target: Target, last_load: float | None) -> Deadline:
    if target.service.ready is not None:
        return Deadline(float(target.service.ready.deadline), "the service file (ready: deadline)")
    if last_load is not None:
        if 5 * last_load < LEAST_DEADLINE:
            return Deadline(LEAST_DEADLINE, f"the least that any start gets; the last load took {last_load:.1f} s")
        return Deadline(5 * last_load, f"five times the last load ({last_load:.1f} s)")
    return Deadline(DEFAULT_DEADLINE, "the default, since no load was measured yet")


@dataclass(frozen=True, slots=True)
class Ready:
    """It answers: seconds from the process's start to the first real answer, and what it said.

    Only of a process that was just started are these seconds a load time; of any other one they are its age.
    """

    seconds: float
    waited: float  # seconds since the wait began
    pages: Pages
    status: Status
    log: Sequence[str]
    detail: str  # what was seen: model, tokens, token counter


@dataclass(frozen=True, slots=True)
class NotReady:
    """It does not answer, and waiting longer is pointless."""

    reason: str  # a stable word: failure_line, crash_loop, process_gone, wrong_model, stuck, deadline
    text: str
    seconds: float
    log: Sequence[str]
    cause: Cause | None = None


@dataclass
class _Wait:
    """What was seen so far."""

    target: Target
    cursor: str | None
    run: str | None
    first: Status | None = None
    status: Status | None = None
    log: list[str] = field(default_factory=list)
    down_since: float | None = None
    cause: Cause | None = None
    cause_since: float = 0.0
    loading: Loading = field(default_factory=Loading)
    refusal: str = ""  # what it answers where it does answer requests, and not as one that is ready

    def look(self, now: float) -> None:
        self.status = self.target.status(self.cursor, self.run)
        self.first = self.first or self.status
        self.loading.see(now, self.status.process)
        self.cursor = self.status.cursor or self.cursor
        self.log = [*self.log, *self.status.log][-LOG_KEPT:]
        gone = self.status.process is None and not self.status.preparing
        self.down_since = (self.down_since or now) if gone else None
        cause = self.target.engine.deepest_cause(self.log)
        if cause is not None and self.cause is None:
            self.cause_since = now
        self.cause = cause

    def hopeless(self, now: float) -> tuple[str, str] | None:
        """The reason to stop waiting, in a word and a sentence."""
        assert self.status is not None  # noqa: S101  (look comes first)
        state = self.target.manager.state(self.status, self.first)
        # Good starts log lines too that look like failures: only one that is certain ends the wait of a live process.
        if self.cause is not None and self.cause.certain and now - self.cause_since >= LAST_WORDS:
            return "failure_line", f"the engine says why it cannot start: {self.cause.line.strip()}"
        if state == "crash_loop":
            result = f" ({self.status.result})" if self.status.result else ""
            return "crash_loop", f"it ends by itself{result}{self._because()}"
        if self.down_since is not None and now - self.down_since >= DOWN_FOR:
            status = "" if self.status.exec_status is None else f" (status {self.status.exec_status})"
            if (self.status.sub or "").startswith("auto-restart"):
                return "crash_loop", f"it ends by itself, and the manager starts it again{self._because()}"
            return "process_gone", f"its process ended{status} and did not come back{self._because()}"
        return None

    def _because(self) -> str:
        return "" if self.cause is None else f": {self.cause.line.strip()}"


def wait_ready(
    target: Target, deadline: Deadline, cursor: str | None, clock: Clock, reporter: Reporter,
    check: Callable[[], None], expected: float | None, run: str | None = None,
) -> Ready | NotReady:  # fmt: skip
    """Wait until the service gives a real answer with the right model, from a process that stays.

    Args:
        target: the instance that was just started.
        deadline: how long it may take.
        cursor: the log's end before the start.
        clock: time.
        reporter: told what the engine does.
        check: raises when somebody asked the run to end.
        expected: seconds that the last load took, for the display.
        run: the run folder on the host of whoever started it.
    """
    begun = clock.monotonic()
    wait = _Wait(target, cursor, run)
    while True:
        check()
        wait.look(now := clock.monotonic())
        elapsed = now - begun
        if (hopeless := wait.hopeless(now)) is not None:
            return NotReady(hopeless[0], hopeless[1], elapsed, wait.log, wait.cause)
        answer = _answers(wait, elapsed)
        if answer is not None:
            return answer
        if elapsed >= deadline.seconds:
            return _too_late(wait, deadline, now, elapsed)
        reporter.waiting(_doing(wait, now), elapsed=elapsed, expected=expected)
        clock.sleep(POLL)


def _answers(wait: _Wait, elapsed: float) -> Ready | NotReady | None:
    """Ready, hopeless, or None: not yet."""
    target = wait.target
    assert wait.status is not None  # noqa: S101
    if wait.status.process is None:
        return None
    wait.refusal = ""
    if target.engine.readiness(target.pages(answer=False), target.service.model.name).state == "loading":
        return None
    pages = target.pages(answer=True)
    readiness = target.engine.readiness(pages, target.service.model.name)
    wait.refusal = readiness.detail if readiness.state == "not_serving" else ""
    if readiness.state == "wrong_model":
        return NotReady("wrong_model", readiness.detail, elapsed, wait.log)
    if readiness.state != "ready":
        return None
    again = target.status(wait.cursor)
    if again.process is None or again.identity != wait.status.identity:
        return None  # it answered and was replaced meanwhile: the new process has to show that it stays
    loaded = again.running_for if again.running_for is not None else elapsed
    return Ready(loaded, elapsed, pages, again, [*wait.log, *again.log][-LOG_KEPT:], readiness.detail)


def _too_late(wait: _Wait, deadline: Deadline, now: float, elapsed: float) -> NotReady:
    """The deadline's end; one who gives it more time has to know whether that can help."""
    text = f"no real answer within {deadline.seconds:.0f} s ({deadline.source})"
    if wait.refusal:  # it has loaded, and waits for requests: that it computes nothing in between is no sign
        return NotReady("deadline", f"{text}; what it answers: {wait.refusal}", elapsed, wait.log, wait.cause)
    told = wait.loading.told(now)
    reason = "deadline" if wait.loading.still_for(now) is None else "stuck"
    return NotReady(reason, f"{text}; {told}" if told else text, elapsed, wait.log, wait.cause)


def _doing(wait: _Wait, now: float) -> str:
    """What the engine does now: bytes read, and its last line."""
    process = wait.status.process if wait.status else None
    parts = ["preparing the start" if wait.status and wait.status.preparing else "loading"]
    if process is not None and process.read_bytes:
        parts.append(f"{process.read_bytes / 1e6:.0f} MB read")
    quiet = wait.loading.still_for(now)
    if quiet is not None:
        parts.append(f"nothing read and no processor time used for {quiet:.0f} s")
    if wait.log:
        parts.append(wait.log[-1].strip()[:100])
    return ", ".join(parts)
