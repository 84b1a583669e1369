"""A baseline that nothing can be compared with ends the step before anything is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.tempers import is_changed, while_measured
from tests.workflow.test_not_kept import assert_reverted
from tests.workflow.test_refused import assert_untouched

from changectl.core.lifecycle import Outcome


def out_of_memory(host: FakeHost) -> None:
    host.counters = {**host.counters, "oom_kill": host.counters["oom_kill"] + 1}


def new_model(host: FakeHost) -> None:
    host.model = {"m.gguf": (100, "bb")}


def other_process(host: FakeHost) -> None:
    assert host.process is not None
    host.process.pid += 1000


def few_requests(host: FakeHost) -> None:
    host.requests = 5


def no_requests(host: FakeHost) -> None:
    host.requests = 0


@pytest.mark.parametrize(
    ("change", "found", "advice"),
    [
        (few_requests, "5 good answers to 5 requests at normal; 20 are needed", "write more `requests`"),
        (no_requests, "level normal has no request records", "see what the load generator says"),
        (out_of_memory, "a process on this host for lack of memory", "mend it first"),
        (new_model, "the model's files are not those that were there when the run began", "mend it first"),
    ],
)
def test_it_is_refused_with_what_is_wrong_and_what_to_do_and_the_service_is_not_even_restarted(
    change: Callable[[FakeHost], None], found: str, advice: str
) -> None:
    stage = Stage()
    while_measured(stage.host, "A", change)
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "baseline_invalid")
    assert end.last.text.startswith("gpu1: the baseline cannot be used, so the change was not tried there: ")
    assert found in end.last.text
    assert advice in end.last.text.partition("What to do: ")[2]
    assert stage.journal.bodies("write.intent") == []
    assert stage.journal.bodies("step.closed")[0]["outcome"] == "refused"


def test_a_service_that_restarts_while_its_baseline_is_taken_is_named() -> None:
    stage = Stage()
    while_measured(stage.host, "A", other_process)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "baseline_invalid")
    assert "the service was restarted under load" in end.last.text
    assert stage.unchanged()


def test_a_plan_that_would_keep_without_evidence_is_not_tried_on_a_worthless_baseline_either() -> None:
    stage = Stage()
    stage.host.requests = 5
    end = stage.apply(BETTER, extra="    on_inconclusive: keep\n")
    assert_untouched(stage, 3, end, "baseline_invalid")


def test_the_measurement_that_was_refused_stays_on_record() -> None:
    stage = Stage()
    stage.host.requests = 5
    stage.apply(BETTER)

    (measured,) = stage.journal.bodies("measure.outcome")
    assert measured["summary"]["levels"][0]["ok"] == 5
    assert stage.journal.bodies("verdict") == []


def test_after_a_restart_for_the_baseline_the_saved_configuration_is_proven() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu1"].requests = 5
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 5, "baseline_invalid")
    assert stage.journal.bodies("write.intent") == []
    assert stage.hosts["gpu2"].starts == 0


def test_a_worthless_baseline_on_the_second_instance_leaves_the_first_as_it_was_kept() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu2"].requests = 5
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.KEPT_PARTLY, "baseline_invalid")
    assert end.last.text.startswith("gpu2: ")
    assert [body["host"] for body in stage.journal.bodies("write.intent")] == ["gpu1"]
    assert [body["host"] for body in stage.journal.bodies("verify.outcome")] == ["gpu2"]


def test_a_second_step_whose_baseline_is_worthless_leaves_the_first_in_force() -> None:
    stage = Stage()

    def few_after_the_first_step(host: FakeHost, call: str) -> None:
        if call == "measure" and len(stage.journal.bodies("step.started")) == 2:
            host.requests = 5

    stage.host.on_call = few_after_the_first_step
    end = stage.apply(BETTER, 6)

    assert [ending.outcome for ending in end.endings] == [Outcome.KEPT, Outcome.REFUSED]
    assert (end.exit_code, end.last.reason) == (3, "baseline_invalid")
    assert is_changed(stage.host)
