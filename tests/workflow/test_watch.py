"""A change that is watched before it is kept: what breaks meanwhile brings the saved configuration back."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import GIB, FakeHost
from tests.workflow.stage import BETTER, STEP, Stage, plan_text
from tests.workflow.tempers import answers_too_little_after_the_change, is_changed

from changectl.core.errors import ContactLost, LeftToHost, Refused
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.open_run import open_run
from changectl.workflow.recover import recover

NEVER = 1e9  # seconds of loading
MB = 1e6


def watching(stage: Stage, seconds: str = "2m", *, slots: int = BETTER, more: str = "") -> RunEnd:
    """Apply a plan whose one step is watched."""
    text = plan_text(extra=f"{STEP % slots}    watch: {seconds}\n{more}")
    return apply(stage.order(text), stage.tools)


def meanwhile(stage: Stage, act: Callable[[FakeHost], None], after: float = 30.0, host: str = "") -> None:
    """Do something to a host once, that many seconds after its watch began."""
    begun: list[float] = []
    done: list[str] = []

    def before(name: str) -> None:
        if name == "journal watch.intent" and (not host or f"play {host} apply" in stage.world.trace):
            begun.append(stage.world.seconds)
        if begun and not done and stage.world.seconds >= begun[0] + after:
            done.append(name)
            act(stage.hosts[host] if host else stage.host)

    stage.world.before = before


def leaking(per_second: float) -> Callable[[float], dict[str, float]]:
    return lambda seconds: {"rss_bytes": int(100 * MB + per_second * seconds)}


def test_a_change_that_nothing_speaks_against_is_kept_when_its_watch_ends() -> None:
    stage = Stage()
    end = watching(stage)
    (watched,) = stage.journal.bodies("watch.outcome")

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    assert "watched for 2m" in end.last.text
    assert (watched["ok"], watched["seconds"], watched["host"]) == (True, 120.0, "gpu1")
    assert 18 <= watched["answers"] <= 25
    assert is_changed(stage.host)


def test_the_dead_man_is_armed_until_the_watch_ended_and_only_then_the_host_calls_it_kept() -> None:
    stage = Stage()
    armed: list[bool] = []
    meanwhile(stage, lambda host: armed.append("R1.1" in host.keeper.armed), after=115.0)
    watching(stage)

    acts = stage.world.acts()
    place = acts.index("journal watch.outcome")
    assert armed == [True]
    assert acts[place - 1 : place + 3] == [
        "journal watch.intent",
        "journal watch.outcome",
        "journal disarm.intent",
        "door gpu1 disarm",
    ]
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept"


def test_how_long_it_is_watched_and_what_is_seen_is_shown() -> None:
    stage = Stage()
    stage.host.loads = leaking(0)
    watching(stage)
    shown = [text for text in stage.reporter.waits if "watching it live" in text]
    assert len(shown) > 60
    assert "gpu1: 3 answers, 100 MB" in "\n".join(shown)


def fails_to_answer(host: FakeHost) -> None:
    """Until it is started again."""

    def answers_again(host: FakeHost) -> None:
        host.load_seconds = 1.0

    host.load_seconds, host.on_start = NEVER, answers_again


@pytest.mark.parametrize(
    ("happens", "reason", "told"),
    [
        (FakeHost.restart, "watch_process", "the service was restarted"),
        (FakeHost.stop, "watch_process", "the service's process ended"),
        (lambda host: host.log.append("GGML_ASSERT(n > 0) failed"), "watch_log", "GGML_ASSERT(n > 0) failed"),
        (fails_to_answer, "watch_failures", "it gave no real answer"),
        (lambda host: host.counters.update(oom_kill=4), "watch_memory", "for lack of memory"),
        (lambda host: host.kernel_log.append("NVRM: Xid 79"), "watch_device", "NVRM: Xid 79"),
        (lambda host: host.log.append("CUDA error: an illegal memory access"), "watch_device", "illegal memory access"),
    ],
    ids=["restarted", "gone", "failure line", "silent", "memory ran out", "driver", "device"],
)
def test_what_breaks_while_it_is_watched_brings_the_saved_configuration_back(
    happens: Callable[[FakeHost], None], reason: str, told: str
) -> None:
    stage = Stage()
    meanwhile(stage, happens, after=32.0)  # between two looks at the host
    end = watching(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.REVERTED, reason)
    assert told in end.last.text
    assert "into the watch" in end.last.text
    assert stage.unchanged()
    assert stage.journal.bodies("watch.outcome")[0]["reason"] == reason
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "reverted"


def test_memory_that_grows_for_good_is_harm_and_its_end_is_foretold() -> None:
    stage = Stage()
    stage.host.loads = lambda seconds: leaking(4 * MB if is_changed(stage.host) else 0)(seconds)
    end = watching(stage, "30m")

    assert (end.exit_code, end.last.reason) == (4, "watch_memory")
    assert "its memory grows by 240 MB a minute and does not settle" in end.last.text
    assert "what is left lasts" in end.last.text
    assert stage.serving_as_before()
    assert stage.journal.bodies("watch.outcome")[0]["watched_seconds"] < 1000


def test_memory_that_settles_is_no_harm() -> None:
    stage = Stage()
    stage.host.loads = lambda seconds: {"rss_bytes": int(min(GIB, 100 * MB + 4 * MB * seconds))}
    assert watching(stage, "30m").exit_code == 0


def test_where_nobody_tells_the_memory_that_is_said_and_is_no_harm() -> None:
    stage = Stage()
    assert watching(stage).exit_code == 0
    (watched,) = stage.journal.bodies("watch.outcome")
    assert "memory (the host did not tell what the service holds)" in watched["not_watched"]
    assert any("only its process, its log and its own answers could be seen" in note for note in stage.reporter.notes)


def test_one_lost_answer_proves_nothing_and_is_counted() -> None:
    stage = Stage()

    def skip_one(host: FakeHost) -> None:
        lost = iter([True])

        def on_call(host: FakeHost, call: str) -> None:
            host.load_seconds = NEVER if call == "probe" and next(lost, False) else 1.0

        host.on_call = on_call

    meanwhile(stage, skip_one)
    assert watching(stage).exit_code == 0
    assert stage.journal.bodies("watch.outcome")[0]["lost_answers"] == 1


def test_every_instance_is_watched_in_its_turn_and_one_that_breaks_goes_back_alone() -> None:
    stage = Stage(("gpu1", "gpu2"))
    meanwhile(stage, FakeHost.restart, host="gpu2")
    end = watching(stage)

    assert (end.exit_code, end.last.reason) == (4, "watch_process")
    assert end.last.text.startswith("gpu2: ")
    assert stage.journal.bodies("step.closed")[0]["instances"] == {"gpu1": "kept", "gpu2": "reverted"}
    assert stage.hosts["gpu2"].digests() == stage.before["gpu2"]
    turns = [act for act in stage.world.trace if act in ("journal watch.intent", "door gpu1 disarm", "play gpu2 apply")]
    assert turns == ["journal watch.intent", "door gpu1 disarm", "play gpu2 apply", "journal watch.intent"]


def test_ctrl_c_while_it_is_watched_brings_the_saved_configuration_back() -> None:
    stage = Stage()
    meanwhile(stage, lambda host: os.kill(os.getpid(), signal.SIGINT))
    end = watching(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (130, Outcome.REVERTED, "interrupted")
    assert stage.unchanged()


def test_a_contact_that_comes_back_in_time_costs_nothing_and_is_said() -> None:
    stage = Stage()
    until: list[float] = []

    def cut(host: FakeHost) -> None:
        until.append(stage.world.seconds + 30)

        def silent(name: str) -> None:
            if name == "door gpu1 status" and stage.world.seconds < until[0]:
                raise ContactLost("gpu1: no route to host")

        stage.world.before = silent

    meanwhile(stage, cut)
    assert watching(stage).exit_code == 0
    (watched,) = stage.journal.bodies("watch.outcome")
    assert any("s without contact" in text for text in watched["not_watched"])
    assert 18 <= watched["answers"] <= 25, "what nobody saw is no part of the two minutes"
    assert any("s without contact" in note for note in stage.reporter.notes)


def test_what_breaks_while_nobody_looks_is_seen_before_the_watch_ends() -> None:
    stage = Stage()

    def cut(host: FakeHost) -> None:
        until = stage.world.seconds + 30
        host.log.append("GGML_ASSERT(n > 0) failed")

        def silent(name: str) -> None:
            if name == "door gpu1 status" and stage.world.seconds < until:
                raise ContactLost("gpu1: no route to host")

        stage.world.before = silent

    meanwhile(stage, cut, after=119.5)
    end = watching(stage)
    assert (end.exit_code, end.last.reason) == (4, "watch_log"), end.last.text
    assert stage.unchanged()


def test_a_contact_that_stays_away_leaves_the_dead_man_armed() -> None:
    stage = Stage()

    def cut(host: FakeHost) -> None:
        def silent(name: str) -> None:
            if name.startswith(("door", "play")):
                raise ContactLost("gpu1: no route to host")

        stage.world.before = silent

    meanwhile(stage, cut)
    with pytest.raises(LeftToHost, match="changectl recover R1"):
        watching(stage, "1h")
    assert stage.host.keeper.armed.keys() == {"R1.1"}


def killed_while_watched() -> Stage:
    stage = Stage()
    stage.world.before = die_before(stage.world, lambda name, _: name == "journal watch.outcome")
    with contextlib.suppress(Killed):
        watching(stage)
    stage.world.before = lambda name: None
    return stage


@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_the_controllers_death_while_it_is_watched_brings_the_saved_configuration_back(acted: bool) -> None:
    stage = killed_while_watched()
    if acted:
        stage.host.lease_runs_out()
    ending = settle(stage)

    assert ending.outcome is Outcome.REVERTED
    assert stage.unchanged()
    assert stage.host.keeper.armed == {}


def test_recover_does_not_go_on_with_what_was_not_watched_to_the_end() -> None:
    stage = killed_while_watched()
    with pytest.raises(Refused, match="not watched to the end"):
        recover(open_run(stage.journal.events("R1")), stage.placed, stage.tools, go_on=True)


def test_a_change_that_is_kept_unjudged_is_watched_too() -> None:
    stage = Stage()
    answers_too_little_after_the_change(stage.host)
    end = watching(stage, more="    on_inconclusive: keep\n")

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT_UNJUDGED)
    assert stage.journal.bodies("watch.outcome")[0]["ok"] is True


def test_without_a_watch_nothing_is_watched() -> None:
    stage = Stage()
    assert stage.apply(BETTER).exit_code == 0
    assert stage.journal.bodies("watch.intent") == []
