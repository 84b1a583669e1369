"""The proof that nothing is under way on an instance that was taken out of service."""

from __future__ import annotations

from changectl.core.errors import HostCallError, Refused
from changectl.traffic import Traffic
from changectl.workflow.not_kept import NotKept
from changectl.workflow.post import Post
from changectl.workflow.recorder import Recorder
from changectl.workflow.spared import in_work
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

USUAL_DRAIN = 60.0  # seconds that requests get to end, where the service does not say
LOOK_EVERY = 0.5  # seconds
PAGE_WITHIN = 5.0  # seconds


def prove_empty(post: Post, target: Target, way: Traffic, recorder: Recorder, tools: Tools, *, cut: bool) -> None:
    """Wait until the engine has nothing in work and nobody is connected to it; what neither tells proves nothing.

    Args:
        post: the balancer.
        target: the instance.
        way: what switched it.
        recorder: the journal of the run.
        tools: the ports.
        cut: whether what it still has in the end is cut: the configuration that runs there is not wanted, or the engine
            is sick and may never end anything.

    Raises:
        NotKept: requests did not end in time.
        Refused: neither can be seen.
    """
    allowed = target.service.drain or USUAL_DRAIN
    begun = tools.clock.monotonic()
    with recorder.acting("drained", {"host": target.name, "deadline": allowed}) as done:
        while True:
            working, connected = _working(target), _connected(post, target, way)
            waited = tools.clock.monotonic() - begun
            done.update(host=target.name, seconds=round(waited, 3), in_work=working, connections=connected)
            seen = [number for number in (working, connected) if number is not None]
            if seen and not any(seen):
                break
            if waited >= allowed:
                if not cut:
                    raise _not_empty(target, working, connected, allowed)
                done.update(cut=True)
                tools.reporter.note(f"{_still(target, working, connected, allowed)}: that is cut")
                return
            tools.interrupts.check()
            tools.reporter.waiting(f"requests on {target.name} come to their end", elapsed=waited, expected=None)
            tools.clock.sleep(LOOK_EVERY)
    tools.reporter.note(f"{target.name}: out of service at {post.address.name}, nothing under way")


def _not_empty(target: Target, working: float | None, connected: float | None, allowed: float) -> Exception:
    text = _still(target, working, connected, allowed)
    if working is None and connected is None:
        return Refused(text, reason="drain_unproven")
    return NotKept("not_drained", f"{text}, so it is not stopped; give them longer with `drain` in the service file")


def _still(target: Target, working: float | None, connected: float | None, allowed: float) -> str:
    if working is None and connected is None:
        told = "neither the engine's counters nor connections tell whether requests are under way"
    else:
        told = f"still {working:g} requests in work" if working else f"still {connected or 0:g} connections"
    return f"{target.name}: {told} {allowed:.0f} s after it was taken out of service"


def _working(target: Target) -> float | None:
    try:
        return in_work(target, target.pages(answer=False, within=PAGE_WITHIN, only="metrics"))
    except HostCallError:
        return None


def _connected(post: Post, target: Target, way: Traffic) -> float | None:
    """Connections from the balancer where it is known which those are, else from anybody beyond the host."""
    try:
        if way.member is not None:
            return float(post.ask("connections", {"remote": way.member})["count"])
        return float(target.ask("connections", {"local_port": target.port})["count"])
    except HostCallError:
        return None
