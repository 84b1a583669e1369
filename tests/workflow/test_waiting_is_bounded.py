"""Nobody waits for ever: a host that vanishes, a process that does not stay, a load that never ends, a quiet play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.workflow.fake_doors import FakePlaybooks
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, SERVICE, WORSE, Stage
from tests.workflow.tempers import is_changed
from tests.workflow.test_not_kept import assert_reverted

from changectl.core.errors import ContactLost, LeftToHost
from changectl.core.ports import HostAddress, Json, PlayResult
from changectl.workflow.lease import GRACE

LIVES = 2.0  # seconds


@dataclass
class Timed(FakePlaybooks):
    """Remembers how long every play may take."""

    timeouts: list[tuple[Mapping[str, Any], float]] = field(default_factory=list)

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        self.timeouts.append((arguments, timeout))
        return super().run(play, host, arguments, timeout=timeout)


def test_a_host_that_vanishes_while_the_model_loads_is_given_up_when_its_lease_is_over() -> None:
    stage = Stage()
    gone_at: list[float] = []

    def vanish(name: str) -> None:
        if name == "reporter waiting" and stage.host.starts and not gone_at:
            gone_at.append(stage.world.seconds)
        if gone_at and name.startswith(("door", "play", "open")):
            raise ContactLost("gpu1: gone")

    stage.host.load_seconds = 20.0
    stage.world.before = vanish
    with pytest.raises(LeftToHost, match="changectl recover R1"):
        stage.apply(BETTER)

    lease = stage.heart.beatings[0].lease.seconds
    assert stage.world.seconds - gone_at[0] < lease + GRACE + 5
    assert "R1.1" in stage.host.keeper.armed  # who is left to bring it back, and does:
    stage.world.before = lambda name: None
    stage.host.lease_runs_out()
    assert stage.serving_as_before()


def ends_by_itself(host: FakeHost, call: str) -> None:
    if is_changed(host) and host.process is not None and host.world.seconds > host.process.started + LIVES:
        host.process = None


def test_a_process_that_ends_two_seconds_after_a_green_play_was_never_started() -> None:
    stage = Stage()
    stage.host.load_seconds = 5.0
    stage.host.on_call = ends_by_itself
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 4, "did_not_start")
    assert stage.journal.bodies("write.outcome")[0]["ok"] is True  # the play itself was green
    assert stage.journal.bodies("ready.outcome")[0]["seconds"] < LIVES + 5


def test_a_process_that_answers_and_ends_two_seconds_later_is_not_kept() -> None:
    stage = Stage()
    stage.host.load_seconds = 0.0
    stage.host.on_call = ends_by_itself
    end = stage.apply(BETTER)

    assert end.last.outcome.value == "reverted"
    assert end.exit_code in (4, 5)
    assert stage.serving_as_before()


@pytest.mark.parametrize(
    ("service", "load", "source"),
    [
        (SERVICE, None, "the service file (ready: deadline)"),
        (SERVICE.replace("ready: {deadline: 30s}\n", ""), 100.0, "five times the last load (100.0 s)"),
        (SERVICE.replace("ready: {deadline: 30s}\n", ""), None, "the default, since no load was measured yet"),
        (SERVICE.replace("true}\nready: {deadline: 30s}", "true, max_out: 20s}"), None, "limits: max_out"),
    ],
)
def test_a_model_that_never_loads_ends_at_a_deadline_that_says_where_it_comes_from(
    service: str, load: float | None, source: str
) -> None:
    stage = Stage(service_text=service)
    stage.memory.load = load

    def never_loads(host: FakeHost) -> None:
        host.load_seconds = float("inf") if is_changed(host) else 1.0

    stage.host.on_start = never_loads
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 4, "did_not_start")
    assert source in end.last.text
    assert source in stage.journal.bodies("ready.outcome")[0]["deadline_source"]


@pytest.mark.parametrize(("grace", "stop"), [("1min 30s", 92), ("10min", 602)])
def test_a_play_may_take_as_long_as_waiting_for_the_lock_and_a_quiet_stop_take_together(grace: str, stop: int) -> None:
    stage = Stage()
    inspect = stage.host.call_inspect

    def patient(args: Mapping[str, Any]) -> dict[str, Any]:
        answer = inspect(args)
        manager = {**answer["manager"], "show": {**answer["manager"]["show"], "TimeoutStopUSec": grace}}
        return {**answer, "manager": manager}

    stage.host.call_inspect = patient  # type: ignore[method-assign]  # the fake's own answer, with another grace
    plays = Timed(stage.hosts)
    stage.tools = replace(stage.tools, playbooks=plays)
    stage.apply(WORSE)

    assert len(plays.timeouts) == 2  # there and back
    for arguments, timeout in plays.timeouts:
        assert arguments["changectl_service"]["stop_timeout"] == stop
        assert timeout > arguments["changectl_lock_wait"] + stop + 60
