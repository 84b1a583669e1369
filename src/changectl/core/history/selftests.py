"""When measuring was proven, and with what result: from the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from changectl.core.history.events import SELFTEST, intent, outcome, text_of
from changectl.core.ports import Event

KINDS = (intent(SELFTEST), outcome(SELFTEST))


@dataclass(frozen=True, slots=True)
class InstanceProof:
    """One instance: the body of its end; empty: it has none."""

    host: str
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether it came to its end."""
        return self.body.get("ok") is True

    @property
    def sees(self) -> bool:
        """Whether measuring was proven there; one that was cut off proves nothing."""
        return self.ended and self.body.get("sees") is True


@dataclass(frozen=True, slots=True)
class SelfTestRun:
    """One `changectl selftest`."""

    run: str
    at: str
    actor: str
    instances: tuple[InstanceProof, ...]

    @property
    def sees(self) -> bool:
        """Whether it was proven on every instance."""
        return bool(self.instances) and all(one.sees for one in self.instances)


def selftests(events: Iterable[Event], service: str) -> list[SelfTestRun]:
    """All of a service, oldest first."""
    found: dict[str, SelfTestRun] = {}
    for event in events:
        if event.kind not in KINDS or text_of(event.body, "service") != service:
            continue
        host = text_of(event.body, "host")
        known = found.get(event.run) or SelfTestRun(event.run, event.at, text_of(event.body, "actor"), ())
        others = tuple(one for one in known.instances if one.host != host)
        body = event.body if event.kind == outcome(SELFTEST) else {}
        found[event.run] = replace(known, instances=(*others, InstanceProof(host, body)))
    return list(found.values())
