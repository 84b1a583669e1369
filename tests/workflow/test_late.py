"""A load generator that was late for a moment: the phase is measured once more, and only then counts for nothing."""

from __future__ import annotations

import pytest
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


def test_one_that_does_not_tell_time_for_a_moment_measures_once_more() -> None:
    stage = Stage()
    stage.host.inexact = [0.03]
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT)
    before, after = stage.journal.bodies("measure.outcome")
    assert "a first token was noticed 30ms late (P99; limit 10ms)" in before["late"]["text"]
    assert "late" not in after
    assert before["summary"]["self_test"] == before["basis"]["self_test"]
    assert before["generator"]["self_test"]["tries"][0]["ttft_p99"] == 0.0002


@pytest.mark.parametrize(
    ("self_tests", "said"),
    [([0.03, 0.03], "did not tell time well enough"), ([None, None], "was not proven to tell time")],
)
def test_one_that_is_not_shown_to_tell_time_before_the_change_leaves_the_service_untouched(
    self_tests: list[float | None], said: str
) -> None:
    stage = Stage()
    stage.host.inexact = self_tests
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "baseline_invalid")
    assert said in end.last.text
    assert "let another host send the load (`caller`)" in end.last.text


@pytest.mark.parametrize("self_tests", [[0.0002, 0.03, 0.03], [0.0002, None, None]])
def test_one_that_is_not_shown_to_tell_time_after_the_change_is_no_verdict(self_tests: list[float | None]) -> None:
    stage = Stage()
    stage.host.inexact = self_tests
    assert_reverted(stage, stage.apply(BETTER), 5, "invalid")


def test_a_generator_that_failed_is_not_asked_again() -> None:
    stage = Stage()
    stage.host.requests = 0
    stage.apply(BETTER)
    assert len(stage.host.salts) == 1
