"""Whether a starting engine gets on: slow loading reads and computes, stuck loading does neither."""

from __future__ import annotations

from dataclasses import dataclass, field

from changectl.core.observed import StatusProcess

STUCK_AFTER = 10.0  # seconds without any movement before that is worth a word
RECENT = 10.0  # seconds over which what was read is told
IDLE = 0.01  # share of one processor that also a process has that only waits
IDLE_LEAST = 0.05  # seconds of processor time: below this the clock's ticks say nothing
MEMORY_MOVES = 1_000_000  # bytes


@dataclass
class Loading:
    """What was seen of one process while it starts."""

    _mark: tuple[float, StatusProcess] | None = None  # when something moved last, and how it stood then
    _reads: list[tuple[float, int]] = field(default_factory=list)

    def see(self, now: float, process: StatusProcess | None) -> None:
        """Take in one look at it; `now` in seconds of a clock that only goes on."""
        if process is None:
            self._mark, self._reads = None, []
            return
        if self._mark is None or _moved(self._mark[1], process, now - self._mark[0]):
            self._mark = (now, process)
        if process.read_bytes is not None:
            recent = [entry for entry in self._reads if entry[0] >= now - RECENT]
            self._reads = [*recent, (now, process.read_bytes)]

    def still_for(self, now: float) -> float | None:
        """Seconds for which it has neither read nor computed anything; None: it has, or that is not known."""
        if self._mark is None or self._mark[1].cpu_seconds is None:
            return None
        quiet = now - self._mark[0]
        return quiet if quiet >= STUCK_AFTER else None

    def told(self, now: float) -> str:
        """How it got on, as the end of a sentence; empty where nothing is known."""
        quiet = self.still_for(now)
        if quiet is not None:
            return f"it is stuck: it has read nothing and used no processor time for {quiet:.0f} s"
        if not self._reads:
            return ""
        (begun, first), (ended, last) = self._reads[0], self._reads[-1]
        lately = f", {(last - first) / 1e6:.0f} MB of them in the last {ended - begun:.0f} s" if ended > begun else ""
        return f"it was still loading: {last / 1e6:.0f} MB read{lately}"


def _moved(before: StatusProcess, now: StatusProcess, seconds: float) -> bool:
    if (before.pid, before.start_ticks, before.read_bytes) != (now.pid, now.start_ticks, now.read_bytes):
        return True
    if abs((now.rss_bytes or 0) - (before.rss_bytes or 0)) >= MEMORY_MOVES:
        return True
    if now.cpu_seconds is None or before.cpu_seconds is None:
        return now.cpu_seconds != before.cpu_seconds
    used = now.cpu_seconds - before.cpu_seconds
    # Less than before: a process of the tree ended meanwhile.
    return used < 0 or used > max(IDLE_LEAST, IDLE * seconds)
