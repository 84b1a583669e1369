"""Before an instance is taken out: are the others there, healthy, and able to take what it serves now?"""

from __future__ import annotations

from changectl.core.engine import Pages, ProbeRequest
from changectl.core.errors import Refused
from changectl.core.spare import OTHERS_UNKNOWN, WAY_OUT, MemberLoad, cannot_spare
from changectl.core.telemetry.engine_page import read_page
from changectl.traffic import Traffic
from changectl.workflow.post import Post, seen_from
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

LOOKS, BETWEEN = 3, 1.0  # looks at every member's counters, and seconds between them: the most counts
PAGE_WITHIN = 5.0  # seconds


def require_spare(post: Post, target: Target, way: Traffic, data: bytes, slots: float | None, tools: Tools) -> None:
    """Look at every other member through the balancer's host.

    Args:
        post: the balancer.
        target: the instance that is to be taken out.
        way: what switches it.
        data: the balancer's file as it is.
        slots: requests that the instance serves at a time, for members that do not say it of themselves.
        tools: the ports.

    Raises:
        Refused: nobody else would serve, or they could not take it, or nobody knows.
    """
    peers = way.peers(data)
    if peers is None:
        text = f"{target.name}: who else serves is not known to changectl where traffic is switched by a command"
        raise Refused(f"{text}; {WAY_OUT}", reason=OTHERS_UNKNOWN)
    told = [peer.address for peer in peers if not peer.down and not peer.backup]
    healthy = [address for address in told if _answers(post, target, address)]
    loads: dict[str, MemberLoad] = {}
    for look in range(LOOKS if healthy else 0):
        if look:
            tools.clock.sleep(BETWEEN)
        for address in [way.member, *healthy]:
            loads[address or ""] = _more(loads.get(address or ""), _load(post, target, address, slots))
    own = loads.pop(way.member or "", MemberLoad(way.member or target.name, None, None))
    refusal = cannot_spare(own, list(loads.values()))
    if refusal is not None:
        raise Refused(f"{target.name}: {refusal[1]}", reason=refusal[0])


def _answers(post: Post, target: Target, address: str) -> bool:
    requests = [one for one in _requests(post, target, address) if one.name == "health"]
    page = post.pages(requests, PAGE_WITHIN).get("health")
    return page is not None and page.status == target.engine.healthy_status


def _load(post: Post, target: Target, address: str | None, slots: float | None) -> MemberLoad:
    pages = post.pages(_requests(post, target, address), PAGE_WITHIN)
    own = target.engine.capacity(pages).slots
    return MemberLoad(address or target.name, in_work(target, pages), own if own is not None else slots)


def _requests(post: Post, target: Target, address: str | None) -> list[ProbeRequest]:
    base = seen_from(post, target, address)
    return target.engine.probes(base, target.service.model.name, target.auth, answer=False)


def in_work(target: Target, pages: Pages) -> float | None:
    """Requests that run or wait, by the engine's own counters; None: it does not tell how many run."""
    page = read_page(target.engine.metric_table, pages.get("metrics"), target.service.model.name)
    running = page.value("running")
    return None if running is None else running + (page.value("waiting") or 0.0)


def _more(before: MemberLoad | None, now: MemberLoad) -> MemberLoad:
    """The larger of two looks; one that could not be taken spoils the figure."""
    if before is None or now.in_work is None or before.in_work is None:
        return now if before is None or now.in_work is None else before
    return now if now.in_work >= before.in_work else before
