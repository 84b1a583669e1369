"""How long a stop may take: the drain, the manager's own patience, and never less than 90 seconds."""

from __future__ import annotations

import math

import pytest

from changectl import engines
from changectl.core.observed import ProcessFacts
from changectl.core.stopping import drain, patience, stop_timeout

VLLM = engines.load("vllm")


@pytest.mark.parametrize(
    ("grace", "drained", "seconds"),
    [
        (math.inf, 0.0, 90.0),
        (math.inf, 600.0, 602.0),
        (None, 600.0, 602.0),
        (None, None, 90.0),
        (10.0, 0.0, 90.0),
        (300.0, 20.0, 302.0),
    ],
)
def test_the_longest_of_drain_grace_and_90_seconds_counts(
    grace: float | None, drained: float | None, seconds: float
) -> None:
    assert stop_timeout(grace, drained) == seconds


def test_a_manager_without_a_limit_is_as_patient_as_the_run() -> None:
    assert patience(math.inf, 10.0) == 90.0
    assert patience(math.inf, 600.0) == 602.0
    assert patience(30.0, 10.0) == 30.0


def test_the_drain_is_the_longest_of_the_declared_the_present_and_the_new_one() -> None:
    process = ProcessFacts(pid=1, argv=["vllm", "serve", "m", "--shutdown-timeout", "20"])
    setting = VLLM.setting("shutdown-timeout")
    assert drain(VLLM, process, None, None, None) == 20
    assert drain(VLLM, process, 50.0, None, None) == 50
    assert drain(VLLM, process, 50.0, setting, "120") == 120
    assert drain(VLLM, process, None, setting, "5") == 20
    assert drain(VLLM, None, 50.0, setting, "5") is None
