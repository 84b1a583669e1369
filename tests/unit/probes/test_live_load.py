"""The pre-check `live_load`: what a trial sends beside users is at most a tenth of what they send."""

from __future__ import annotations

import pytest
from tests.unit.probes.situations import situation

from changectl import probes
from changectl.core.declared.live_load import LiveLoad
from changectl.core.precheck import CheckResult, CheckState
from changectl.core.units import LevelLoad

STREAM, RATE = {"low": LevelLoad(streams=1)}, {"low": LevelLoad(rate=0.2)}


def asked(live: LiveLoad | None) -> CheckResult:
    return probes.load("live_load").run(situation(live=live))


@pytest.mark.parametrize(
    ("live", "state", "says"),
    [
        (None, "unknown", "was not looked at"),
        (LiveLoad("no load is sent"), "not_applicable", "no load is sent"),
        (LiveLoad("", STREAM, 60, 0, 0, 0), "passed", "it serves nobody"),
        (LiveLoad("", STREAM, 60, None, 0, None), "passed", "it serves nobody"),
        (LiveLoad("", STREAM, 60, 0, 5000, None), "unknown", "the engine does not tell what `low`"),
        (LiveLoad("", STREAM, 59, 0, 0, 0), "failed", "`low` would add 1 stream"),
        (LiveLoad("", STREAM, 60, None, 70, None), "unknown", "the engine does not tell what `low`"),
        (LiveLoad("", RATE, 60, None, 70, 3), "unknown", "the engine does not tell what `low`"),
        (LiveLoad("", STREAM, 12, 24, 70, 9.9), "failed", "a tenth of that, 0.99 streams, is the most"),
        (LiveLoad("", STREAM, 12, 24, 70, 10), "passed", "`low` adds 1 stream, and 1 stream may be added"),
        (LiveLoad("", RATE, 12, 24, 70, None), "passed", "`low` adds 0.2 rps, and 0.2 rps may be added"),
        (LiveLoad("", RATE, 20, 24, 70, 30), "failed", "a tenth of that, 0.12 rps, is the most"),
        (LiveLoad("", STREAM, 60, 0, 0, 0.5), "failed", "would add 1 stream"),
    ],
)
def test_no_more_than_a_tenth_is_added_to_what_users_send(live: LiveLoad | None, state: CheckState, says: str) -> None:
    result = asked(live)

    assert (result.state, says in result.detail) == (state, True), result
    assert result.refuses == (state in ("failed", "unknown"))


def test_a_refusal_says_the_figures_what_to_do_and_has_a_word_of_its_own() -> None:
    result = asked(LiveLoad("", RATE, 20, 24, 70, 30))

    assert result.figure == "live in 20s: 1.2 requests/s, 30 under way at a time"
    assert "effort: {observe: 10m}" in result.hint
    assert "load_on_live: true" in result.hint
    assert result.reason == "live_load"


def test_two_levels_are_each_held_against_their_own() -> None:
    levels = {"low": LevelLoad(streams=1), "trickle": LevelLoad(rate=0.5)}
    result = asked(LiveLoad("", levels, 20, 24, 70, 30))

    assert result.state == "failed"
    assert "`trickle`" in result.detail
    assert "`low`" not in result.detail
