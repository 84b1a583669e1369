"""A load generator that was late for a moment: the phase is measured once more, and only then counts for nothing."""

from __future__ import annotations

from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.tempers import while_measured
from tests.workflow.test_not_kept import assert_reverted
from tests.workflow.test_refused import assert_untouched

from changectl.core.lifecycle import Outcome


def test_a_phase_in_which_the_generator_was_late_is_measured_once_more_with_other_prompts() -> None:
    stage = Stage()
    stage.host.late = 1
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    before, after = stage.journal.bodies("measure.outcome")
    assert before["late"]["text"].startswith("it sent 300ms late (P99) at ")
    assert before["late"]["blob"] in stage.records.blobs
    assert before["late"]["blob"] != before["blob"]
    assert "late" not in after
    assert len(set(stage.host.salts)) == len(stage.host.salts) == 3


def test_the_first_try_is_no_part_of_the_phase() -> None:
    stage = Stage()
    stage.host.late = 1
    stage.apply(BETTER)

    for measured in stage.journal.bodies("measure.outcome"):
        (level,) = measured["summary"]["levels"]
        assert level["n"] == 24
        assert level["lag_p99"] < 0.01


def test_one_that_is_late_twice_before_the_change_leaves_the_service_untouched() -> None:
    stage = Stage()
    stage.host.late = 2
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "baseline_invalid")
    assert "the load generator did not keep up at normal: it sent 300ms late (P99)" in end.last.text
    assert len(stage.host.salts) == 2


def test_one_that_is_late_twice_after_the_change_is_no_verdict() -> None:
    stage = Stage()

    def late(host: FakeHost) -> None:
        host.late = 1

    while_measured(stage.host, "B", late)
    assert_reverted(stage, stage.apply(BETTER), 5, "invalid")


def test_a_generator_that_failed_is_not_asked_again() -> None:
    stage = Stage()
    stage.host.requests = 0
    stage.apply(BETTER)
    assert len(stage.host.salts) == 1
