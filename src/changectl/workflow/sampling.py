"""Look at the service's host and at the engine's page while a load runs. What goes wrong here fails no measurement."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from changectl.core.engine import Page
from changectl.core.errors import HostCallError
from changectl.core.telemetry.activity import Activity, Looks, activity
from changectl.core.telemetry.engine_page import gauges_of
from changectl.workflow.calling import CallerLost
from changectl.workflow.live import engine_page
from changectl.workflow.target import Target

LONGEST = 6 * 3600.0  # seconds; the sampler ends by itself then, whatever became of us
FORMAT = 1


@dataclass
class Sampled:
    """What was seen during one phase; empty until the load is over."""

    target: Target
    before: Page | None = None
    after: Page | None = None
    looks: Looks = field(default_factory=Looks)

    @property
    def activity(self) -> Activity:
        """Summed up."""
        engine, model = self.target.engine, self.target.service.model.name
        return activity(engine.metric_table, model, (self.before, self.after), self.looks)

    def raw(self) -> str:
        """Everything as it came, as one JSON document."""
        pages = {name: None if page is None else page.body for name, page in
                 (("page_before", self.before), ("page_after", self.after))}  # fmt: skip
        looks = {"looks": list(self.looks.looks), "threads": dict(self.looks.threads)}
        return json.dumps({"format": FORMAT, **pages, **looks, "missing": dict(self.looks.missing)})


@contextmanager
def sampling(found: Sampled, expected: float | None, nvml: str | None) -> Iterator[None]:
    """Sample from here to the end of the block, also where the block fails for a reason that leaves the door open.

    Args:
        found: where it goes; its target is the instance under load, which may come from wherever it likes.
        expected: seconds that the load takes; None: not known.
        nvml: the source of NVML's bindings where the host has a GPU.

    Raises:
        ContactLost: as any call of the door.
    """
    found.before = _page(found.target)
    failure = _begin(found.target, expected, nvml)
    try:
        yield
    except (HostCallError, CallerLost):
        found.looks = _collected(found.target, failure)
        raise
    found.looks = _collected(found.target, failure)
    found.after = _page(found.target)


def interval(expected: float | None) -> float:
    """Seconds between two looks: one, and less where the load is so short that its peaks would fall in between."""
    return 0.5 if expected is None else min(1.0, max(0.25, expected / 30))


def _begin(target: Target, expected: float | None, nvml: str | None) -> str | None:
    """Start the sampler on the host; why it could not be, if so."""
    table = target.engine.metric_table
    args: dict[str, Any] = {
        "action": "start",
        "seconds": LONGEST,
        "interval": interval(expected),
        "manager": target.manager_argument,
        "series": sorted(gauges_of(table)),
        "nvml": nvml,
    }
    requests = target.requests("metrics") if args["series"] else []
    if requests:
        args["page"] = requests[0].as_args()
    try:
        target.ask("sample", args)
    except HostCallError as error:
        return str(error)
    return None


def _collected(target: Target, failure: str | None) -> Looks:
    if failure is None:
        try:
            answer = target.ask("sample", {"action": "collect"})
            lines = zlib.decompress(base64.b64decode(answer["looks"])).splitlines()
            looks = [json.loads(line) for line in lines]
            return Looks(looks, answer["missing"], answer["threads"], answer["interval"], answer["cpu_seconds"])
        except HostCallError as error:
            failure = str(error)
    parts = ("cores", "queue", "threads", "throttled_us", "rss", "memory", "vmstat", "pressure", "disks", "network",
             "tcp", "gpus", "memory_events", "process")  # fmt: skip
    return Looks(missing=dict.fromkeys(parts, failure))


def _page(target: Target) -> Page | None:
    try:
        return engine_page(target)
    except HostCallError as error:
        return Page(error=str(error))
