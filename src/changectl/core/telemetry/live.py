"""The service as it is right now, by canonical names: engine page and host in one look, and what lies between two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from changectl.core.telemetry.engine_page import EnginePage
from changectl.core.telemetry.engine_window import BEGAN_ANEW, Bound, EngineWindow, window
from changectl.core.telemetry.host_window import HostWindow, Json, host_window
from changectl.core.telemetry.live_counts import failures


@dataclass(frozen=True, slots=True)
class LiveSample:
    """One look. Every property is None where it is missing; `missing` and `engine.missing` say why.

    Attributes:
        at: seconds since the epoch, by the host's clock.
        process: the service's main process (id, start ticks); None: it does not run, or cannot be told.
        engine: the metrics page.
        look: the host's own look, as the call `sample` gives it.
        missing: part of that look -> why it could not be read.
    """

    at: float
    process: tuple[int, int] | None
    engine: EnginePage
    look: Json = field(repr=False)
    missing: Mapping[str, str] = field(default_factory=dict)
    threads: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def running(self) -> float | None:
        """Requests being worked on."""
        return self.engine.value("running")

    @property
    def waiting(self) -> float | None:
        """Requests in the engine's queue."""
        return self.engine.value("waiting")

    @property
    def kv_use(self) -> float | None:
        """Used share of the context cache."""
        return self.engine.value("kv_use")

    @property
    def preemptions(self) -> float | None:
        """Since the process started."""
        return self.engine.value("preemptions")

    @property
    def errors(self) -> float | None:
        """Requests that ended badly, since the process started: by the engine, or by the status of its answers."""
        return failures(self.engine.value)

    @property
    def service_memory(self) -> int | None:
        """Resident bytes of the service's processes."""
        return _whole(self.look.get("rss"))

    @property
    def memory_available(self) -> int | None:
        """Bytes that the host could give out without swapping."""
        return _whole((self.look.get("memory") or {}).get("available"))


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """What happened between two looks.

    Attributes:
        seconds: between them, by the host's clock.
        restarted: the main process is another one, or the engine's counters began anew; then `engine` knows nothing.
        engine: growth of counters and times.
        host: rates and counts of host and service.
        memory_growth: bytes by which the service's memory grew, negative: shrank; None: missing, or restarted.
    """

    seconds: float
    restarted: bool
    engine: EngineWindow
    host: HostWindow
    memory_growth: int | None

    @property
    def errors(self) -> float | None:
        """Requests that ended badly in between."""
        return failures(self.engine.gain)

    @property
    def answered(self) -> float | None:
        """Requests that ended with an answer in between."""
        return self.engine.gain("requests_ok")

    @property
    def preemptions(self) -> float | None:
        """In between."""
        return self.engine.gain("preemptions")

    @property
    def oom_kills(self) -> float | None:
        """Processes of the service that the kernel ended for lack of memory; where it has no cgroup, of the host."""
        return self.host.counts.get("service_oom_kills", self.host.counts.get("oom_kills"))

    def latency(self, name: str, share: float = 0.95) -> Bound | None:
        """Between which edges a percentile lies: of `ttft`, `itl`, `tpot`, `e2e_time`, ...; None: not exposed."""
        return self.engine.percentile(name, share)


def live_window(earlier: LiveSample, later: LiveSample) -> LiveWindow:
    """What happened between two looks at the same service."""
    engine = window(earlier.engine, later.engine)
    other = earlier.process != later.process
    if other and not engine.restarted:
        missing = {**engine.missing, **dict.fromkeys(engine.gains, BEGAN_ANEW)}
        engine = EngineWindow(missing=missing, restarted=True)
    threads = {**earlier.threads, **later.threads}
    host = host_window([earlier.look, later.look], {**earlier.missing, **later.missing}, threads)
    was, now = earlier.service_memory, later.service_memory
    growth = None if was is None or now is None or engine.restarted else now - was
    return LiveWindow(later.at - earlier.at, engine.restarted, engine, host, growth)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
