"""How long a lease lasts, how often it is extended, and what a host's records mean for a run that was cut off."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core import lease
from changectl.core.lease import Lease
from changectl.core.lifecycle import Found, Move, found_on, next_move

DONE = {"state": "done", "outcome": "restored", "generation": 3}


def test_the_declared_length_counts() -> None:
    assert lease.length(3.0, 900.0, 90.0) == 3.0


def test_a_slow_start_gets_a_longer_lease_and_nothing_a_shorter_one_than_five_minutes() -> None:
    assert lease.length(None, None, 90.0) == 300.0
    assert lease.length(None, 600.0, 90.0) == 1380.0


@given(st.floats(2, 86_400))
def test_three_signs_of_life_may_get_lost(seconds: float) -> None:
    assert Lease("R.1", 1, "n", seconds).beat * 4 <= max(seconds, 0.8)


def standing(**records: Any) -> dict[str, Any]:
    return {"armed": None, "disarmed": None, "fired": None, "generation": 1, **records}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (standing(), Found.UNTOUCHED),
        (standing(generation=None), Found.OPEN),  # it should know the run, and does not: its folder is gone
        (standing(armed={"nonce": "n"}), Found.OPEN),
        (standing(touched=True), Found.OPEN),  # changed, and what was armed is gone
        (standing(touched=True, fired=DONE), Found.RESTORED),
        (standing(disarmed={"outcome": "kept", "generation": 1}), Found.KEPT),
        (standing(disarmed={"outcome": "reverted", "generation": 1}), Found.RESTORED),
        (standing(disarmed={"outcome": "accepted", "generation": 1}), Found.ACCEPTED),
        (standing(fired=DONE), Found.RESTORED),
        (standing(fired={**DONE, "outcome": "nothing_to_do"}), Found.RESTORED),
        (standing(fired={**DONE, "outcome": "failed"}), Found.OPEN),
        (standing(fired={**DONE, "state": "acting"}), Found.OPEN),
        (standing(fired=DONE, disarmed={"outcome": "kept", "generation": 1}), Found.RESTORED),  # it acted later
        (standing(fired=DONE, disarmed={"outcome": "kept", "generation": 4}), Found.KEPT),  # and was changed again
        (standing(armed={"nonce": "n"}, disarmed={"outcome": "kept", "generation": 9}), Found.OPEN),
        # Of damaged records the host says what its events tell: still armed, or brought back, or a way back begun.
        (standing(armed={"damaged": True, "only": None}), Found.OPEN),
        (standing(fired={"damaged": True, "state": "acting", "generation": 5}), Found.OPEN),
        (standing(fired={**DONE, "damaged": True}), Found.RESTORED),
    ],
)
def test_what_a_host_has_on_record(answer: dict[str, Any], found: Found) -> None:
    assert found_on(answer, begun=True) is found


def test_a_host_that_was_never_to_be_armed_and_knows_nothing_is_untouched() -> None:
    assert found_on(standing(generation=None), begun=False) is Found.UNTOUCHED


@pytest.mark.parametrize("found", list(product(Found, repeat=2)))
def test_every_state_has_exactly_one_legal_next_move(found: tuple[Found, Found]) -> None:
    decided = {Found.KEPT, Found.ACCEPTED}
    rolling = Move.KEEP if set(found) <= {*decided, Found.UNTOUCHED} else Move.RESTORE
    assert next_move(found) is (Move.ABORT if set(found) == {Found.UNTOUCHED} else rolling)


@pytest.mark.parametrize("found", list(product(Found, repeat=2)))
def test_what_is_kept_everywhere_or_nowhere_is_kept_only_where_every_host_says_so(found: tuple[Found, Found]) -> None:
    kept = Move.KEEP if set(found) <= {Found.KEPT, Found.ACCEPTED} else Move.RESTORE
    assert next_move(found, all_or_none=True) is (Move.ABORT if set(found) == {Found.UNTOUCHED} else kept)
