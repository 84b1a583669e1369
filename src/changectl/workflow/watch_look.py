"""One look at a service that serves: a real answer, the engine's counters, the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changectl.core.engine import Pages
from changectl.core.judging.watch import Live
from changectl.core.measuring.metrics import Guard
from changectl.core.measuring.proportions import Count
from changectl.core.observed import HostFacts, Status
from changectl.core.ports import Clock
from changectl.core.telemetry.engine_page import read_page
from changectl.core.telemetry.live_counts import counts
from changectl.workflow.contact import Contact
from changectl.workflow.target import Target

ASK_AGAIN = 1.0  # seconds after which an answer that did not come is asked for once more


@dataclass(frozen=True)
class Answer:
    """What came of asking for a real answer.

    Attributes:
        pages: the engine's, of the last time it was asked.
        wrong: why there is none; "": there is one.
        lost: how often it was asked in vain.
    """

    pages: Pages
    wrong: str
    lost: int


def real_answer(target: Target, clock: Clock) -> Answer:
    """A few tokens; an answer that did not come is asked for once more, since one lost request proves nothing."""
    pages: Pages = {}
    wrong, lost = "", 0
    for pause in (0.0, ASK_AGAIN):
        clock.sleep(pause)
        pages = target.pages(answer=True)
        readiness = target.engine.readiness(pages, target.service.model.name)
        if readiness.state == "ready":
            return Answer(pages, "", lost)
        wrong, lost = readiness.detail, lost + 1
    return Answer(pages, wrong, lost)


def live(status: Status, host: HostFacts, page: Mapping[str, Count]) -> Live:
    """What a look told."""
    memory = status.process.rss_bytes if status.process else None
    return Live(memory, host.memory.available if host.memory else None, page)


def counted(target: Target, pages: Pages, slo: Sequence[Guard]) -> Mapping[str, Count]:
    """The engine's own counters since its start, of a page that was read already."""
    page = read_page(target.engine.metric_table, pages.get("metrics"), target.service.model.name)
    return counts(page, slo)


def without(counts: Mapping[str, Count], answers: int) -> dict[str, Count]:
    """What users sent: the good answers to requests of our own are none of theirs."""
    return {name: Count(one.failed, max(one.failed, one.n - answers)) for name, one in counts.items()}


def before_the_change(contact: Contact, slo: Sequence[Guard]) -> Live:
    """The same of the process on the saved configuration, over its whole life."""
    process = contact.observed.process
    return Live(process.rss_bytes if process else None, None, counted(contact.target, contact.pages, slo))
