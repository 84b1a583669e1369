"""What engine and host did during one phase, as it is recorded with the measurement. Evidence, never a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from changectl.core.engine import Page
from changectl.core.measuring.durations import Durations
from changectl.core.measuring.records import OK, Record, Records
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.core.telemetry.engine_series import CANONICAL, MetricTable
from changectl.core.telemetry.engine_window import EngineWindow, window
from changectl.core.telemetry.host_window import HostWindow, Json, Spread, host_window, spread

NO_SAMPLES = "no sample was taken"
NO_LOOK = "no look fell into the load"
_GAUGES = [row.name for row in CANONICAL if row.kind == "gauge" and row.name != "process_start"]


@dataclass(frozen=True, slots=True)
class Looks:
    """What the host's sampler brought.

    Attributes:
        looks: in order of time; those of a phase that broke off may be missing altogether.
        missing: part of a look -> why it could not be read.
        threads: thread -> what it calls itself.
        interval: seconds between two looks, as asked for.
        cpu_seconds: what sampling itself cost.
    """

    looks: Sequence[Json] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    threads: Mapping[str, str] = field(default_factory=dict)
    interval: float | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """One phase.

    Attributes:
        engine: growth of its counters and times over the whole phase, the warm-up included.
        gauges: what stood on its page at each look that fell into the load.
        gauges_missing: gauge -> why there is none.
        host: rates, peaks and counts.
        looks: how often the host was looked at, and what that cost.
    """

    engine: EngineWindow
    gauges: Mapping[str, Spread]
    gauges_missing: Mapping[str, str]
    host: HostWindow
    looks: Looks

    def to_json(self, records: Iterable[Record] = ()) -> dict[str, Any]:
        """The record, with how long the phase's requests took as the client saw them (the warm-up's, too)."""
        engine = self.engine.to_json()
        times = _times(Records.of(records))
        return {
            "engine": {
                **engine,
                "gauges": {name: asdict(figure) for name, figure in self.gauges.items()},
                "missing": {**engine["missing"], **self.gauges_missing},
            },
            "host": self.host.to_json(),
            "client": {"requests": len(times), "seconds": sum(times)},
            "sampler": {"interval": self.looks.interval, "cpu_seconds": self.looks.cpu_seconds},
        }


def activity(table: MetricTable, model: str | None, pages: tuple[Page | None, Page | None], looks: Looks) -> Activity:
    """Sum a phase up.

    Args:
        table: what the engine exposes.
        model: the name of the measured one.
        pages: its metrics page before and after the load.
        looks: what was seen meanwhile; the first was taken before the load began, and the last when it was over.
    """
    before, after = (read_page(table, page, model) for page in pages)
    under_load = looks.looks[1:-1]
    unseen = NO_LOOK if looks.looks and not under_load else NO_SAMPLES
    seen = [read_page(table, _page(look["page"]), model) for look in under_load if look.get("page")]
    gauges = {name: figure for name in _GAUGES if (figure := _gauge(seen, name)) is not None}
    last = seen[-1].missing if seen else {}
    missing = {name: last.get(name) or after.missing.get(name) or unseen for name in _GAUGES if name not in gauges}
    host = host_window(looks.looks, looks.missing, looks.threads)
    return Activity(window(before, after), gauges, missing, host, looks)


def _times(records: Records) -> list[float]:
    """Seconds that each good answer took."""
    good = Durations(records.only([cls == OK for cls in records.texts("cls")]))
    times: list[float] = good.values("e2e_sent").tolist()
    return times


def _page(answer: Json) -> Page:
    return Page(status=answer.get("status"), body=answer.get("body") or "", error=answer.get("error"))


def _gauge(pages: Sequence[EnginePage], name: str) -> Spread | None:
    return spread([value for page in pages if (value := page.value(name)) is not None])
