"""A stage whose service is sick, and what can be done to it while a change of it is watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text

from changectl.core.incident import Incident
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply

REASON = "OPS-99 chat does not answer"
NEVER = 1e9  # seconds of loading
MENDED = (0, Outcome.KEPT_UNJUDGED, "incident")
BROKEN = (4, Outcome.REVERTED, "guard_broken")


def ended(end: RunEnd) -> tuple[int, Outcome, str]:
    """Exit code, outcome and reason."""
    return end.exit_code, end.last.outcome, end.last.reason


def mend(stage: Stage, *slots: int, incident: Incident | None = None, extra: str = "") -> RunEnd:
    """Apply a plan in an incident."""
    order = stage.order(plan_text(*(slots or (() if extra else (BETTER,))), extra=extra))
    return apply(replace(order, incident=incident or Incident(REASON)), stage.tools)


def crash_looping(names: tuple[str, ...] = ("gpu1",), service_text: str = SERVICE) -> Stage:
    """The service of every host ends by itself on the saved configuration, and is started again and again."""
    stage = Stage(names, service_text=service_text)
    for host in stage.hosts.values():
        host.refuses = lambda argv: "CUDA out of memory" if argv[-1] == "4" else None
        host.process, host.waits_to_restart = None, True
    return stage


def hung() -> Stage:
    """The process runs and gives no answer on the saved configuration."""
    stage = Stage()

    def on_start(host: FakeHost) -> None:
        host.load_seconds = NEVER if host.process is not None and host.process.argv[-1] == "4" else 1.0

    stage.host.on_start, stage.host.load_seconds = on_start, NEVER
    return stage


def never_answers_on(stage: Stage, slots: int) -> None:
    """The new configuration runs and gives no answer either."""

    def on_start(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == str(slots):
            host.load_seconds = NEVER

    stage.host.on_start = on_start


def while_watched(stage: Stage, act: Callable[[FakeHost], None], after: float = 30.0) -> None:
    """Do something to the first host once, that many seconds after the live guards began."""
    begun: list[float] = []
    done: list[str] = []

    def before(name: str) -> None:
        if name == "journal guards.intent":
            begun.append(stage.world.seconds)
        if begun and not done and stage.world.seconds >= begun[0] + after:
            done.append(name)
            act(stage.host)

    stage.world.before = before
