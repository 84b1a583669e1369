"""What no verdict can be built on is never a pass: a load generator that failed, three requests a side."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.tempers import is_changed, while_measured
from tests.workflow.test_not_kept import assert_reverted
from tests.workflow.test_refused import assert_untouched

from changectl.core.errors import HostCallError

FAILED = "the load generator ended with status 3"


def generator_fails(host: FakeHost) -> None:
    raise HostCallError(f"{host.name}: {FAILED}", reason="generator_failed")


def three_requests(host: FakeHost) -> None:
    host.requests = 3


def test_a_load_generator_that_fails_on_the_new_configuration_takes_it_back() -> None:
    stage = Stage()
    while_measured(stage.host, "B", generator_fails)
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 5, "invalid")
    assert FAILED in end.last.text


def test_a_load_generator_that_fails_on_the_saved_configuration_ends_it_before_anything_is_written() -> None:
    stage = Stage()
    while_measured(stage.host, "A", generator_fails)
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "baseline_invalid")
    assert FAILED in end.last.text


@pytest.mark.parametrize("policy", ["", "    on_inconclusive: keep\n"])
def test_three_requests_a_side_are_not_even_a_baseline(policy: str) -> None:
    stage = Stage()
    stage.host.requests = 3
    assert_untouched(stage, 3, stage.apply(BETTER, extra=policy), "baseline_invalid")


def test_three_requests_on_the_new_configuration_are_inconclusive_however_fast_they_were() -> None:
    stage = Stage()
    stage.host.speed = lambda argv, streams: (1, 1) if is_changed(stage.host) else (20, 5)
    while_measured(stage.host, "B", three_requests)
    assert_reverted(stage, stage.apply(BETTER), 5, "inconclusive")
