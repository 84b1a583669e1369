"""What moved between the two measurements, or under load, never counts as the change's doing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.tempers import answers_too_little_after_the_change, is_changed, while_measured
from tests.workflow.test_not_kept import assert_reverted

from changectl.core.lifecycle import Outcome


def between(change: Callable[[FakeHost], None]) -> Stage:
    """A story in which something else changes with the start of the new configuration."""
    stage = Stage()
    stage.host.on_start = lambda host: change(host) if is_changed(host) else None
    return stage


def during(letter: str, change: Callable[[FakeHost], None]) -> Stage:
    """A story in which something happens while a phase is measured."""
    stage = Stage()
    while_measured(stage.host, letter, change)
    return stage


def new_model(host: FakeHost) -> None:
    host.model = {"m.gguf": (100, "bb")}


@pytest.mark.parametrize(
    ("fact", "change"),
    [
        ("kernel", lambda host: setattr(host, "kernel", "6.2")),
        ("boot", lambda host: setattr(host, "boot", "c")),
        ("program", lambda host: host.facts.update(program=[1, 2, 3])),
    ],
)
def test_what_moved_with_the_restart_makes_the_comparison_invalid(
    fact: str, change: Callable[[FakeHost], None]
) -> None:
    stage = between(change)
    end = stage.apply(BETTER)
    assert_reverted(stage, end, 5, "invalid")
    assert f"undeclared difference: {fact}" in end.last.text


def test_another_user_than_before_is_invalid_and_no_proof_of_the_way_back() -> None:
    end = between(lambda host: host.facts.update(uid=0)).apply(BETTER)
    assert (end.exit_code, end.last.outcome, end.last.reason) == (6, Outcome.REVERT_UNVERIFIED, "invalid")
    assert "undeclared difference: user" in end.last.text
    assert "runs as user 0, and ran as 990" in end.last.text


@pytest.mark.parametrize("stage", [between(new_model), during("B", new_model)])
def test_a_model_replaced_on_the_way_is_never_kept(stage: Stage) -> None:
    # The saved files come back; the model that was measured before is gone, and only a person can bring that back.
    end = stage.apply(BETTER)
    assert (end.exit_code, end.last.outcome, end.last.reason) == (6, Outcome.REVERT_UNVERIFIED, "invalid")
    assert "undeclared difference: model" in end.last.text
    assert stage.serving_as_before()


def test_a_fact_that_nobody_can_read_is_flagged() -> None:
    stage = Stage()
    stage.host.facts["environ"] = None
    stage.host.kernel = None
    end = stage.apply(BETTER)
    assert end.exit_code == 0
    (flag,) = [one for one in stage.journal.bodies("verdict")[0]["flags"] if one["code"] == "conditions_unknown"]
    assert flag["text"].endswith("environment, kernel")


def out_of_memory(host: FakeHost) -> None:
    host.counters = {**host.counters, "oom_kill": host.counters["oom_kill"] + 1}


def own_cgroup(host: FakeHost) -> None:
    host.memory_events = {"oom_kill": (host.memory_events or {}).get("oom_kill", 0) + 1}


@pytest.mark.parametrize(
    "change",
    [
        out_of_memory,
        own_cgroup,
        lambda host: host.log.append("chat.service: A process of this unit has been killed by the OOM killer."),
        lambda host: host.kernel_log.append("Out of memory: Killed process 7 (llama-server)"),
        lambda host: host.kernel_log.append("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."),
        lambda host: host.log.append("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        lambda host: host.log.append("ggml_cuda_compute_forward: CUDA error: an illegal memory access was encountered"),
    ],
)
def test_a_host_that_breaks_down_under_the_new_configuration_has_regressed(change: Callable[[FakeHost], None]) -> None:
    stage = during("B", change)
    stage.host.memory_events = {"oom_kill": 0}
    assert_reverted(stage, stage.apply(BETTER), 4, "regressed")


def test_a_host_that_reads_back_from_swap_is_flagged() -> None:
    stage = during("B", lambda host: host.counters.update(pswpin=host.counters["pswpin"] + 1000))
    assert stage.apply(BETTER).exit_code == 0
    assert [flag["code"] for flag in stage.journal.bodies("verdict")[0]["flags"]] == ["swapped_in"]


def after_the_verdict(stage: Stage, change: Callable[[FakeHost], None]) -> Stage:
    """A story in which something happens to the first instance when the last verdict is there."""

    def happen(name: str) -> None:
        if name == "journal verdict" and len(stage.journal.bodies("verdict")) == len(stage.names) - 1:
            change(stage.host)

    stage.world.before = happen
    return stage


def dies(host: FakeHost) -> None:
    host.process = None


def restarts(host: FakeHost) -> None:
    host.restart()


def hangs(host: FakeHost) -> None:
    host.load_seconds = 1e9 if is_changed(host) else 1.0
    host.on_start = hangs


@pytest.mark.parametrize("change", [dies, restarts, hangs])
@pytest.mark.parametrize("names", [("gpu1",), ("gpu1", "gpu2")])
def test_what_was_judged_has_to_run_and_answer_when_it_is_kept(
    change: Callable[[FakeHost], None], names: tuple[str, ...]
) -> None:
    stage = after_the_verdict(Stage(names), change)
    end = stage.apply(BETTER)
    assert (end.exit_code, end.last.reason) == (4, "died_after_judgement")
    assert end.last.outcome is (Outcome.REVERTED if len(names) == 1 else Outcome.KEPT_PARTLY)
    assert stage.journal.bodies("step.closed")[0]["instances"]["gpu1"] == "reverted"
    assert stage.host.digests() == stage.before["gpu1"]
    assert "gpu1" in end.last.text


def test_a_change_kept_without_a_verdict_has_to_run_too() -> None:
    stage = after_the_verdict(Stage(), dies)
    answers_too_little_after_the_change(stage.host)
    end = stage.apply(BETTER, extra="    on_inconclusive: keep\n")
    assert (end.last.outcome, end.last.reason) == (Outcome.REVERTED, "died_after_judgement")
