"""Memory over a watch: a leak is found and its end foretold; what settles, wobbles or is not seen is no leak."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from changectl.core.judging.growth import WITHIN, Growth, Held, growth, warm_up

MB, GB = 1e6, 1e9
WATCH = 1800.0
ALPHA = 0.0025

Curve = Callable[[float], float]


def harm_at(
    curve: Curve, *, left: float = 8 * GB, before: float | None = None, noise: float = 0.0, seed: int = 0
) -> float | None:
    """Seconds until a watch calls it harm; None: never."""
    chance = random.Random(seed)
    held: list[Held] = []
    for look in range(int(WATCH / 15)):
        seconds = look * 15.0
        held.append(Held(seconds, curve(seconds) + chance.gauss(0, noise)))
        seen = growth(held, WATCH, left - (curve(seconds) - curve(0))) if look % 3 == 0 else None
        if seen is not None and seen.harms(ALPHA, before, WATCH):
            return seconds
    return None


def leaking(per_minute: float) -> Curve:
    return lambda seconds: 2 * GB + per_minute * seconds / 60


def test_a_leak_is_found_within_minutes_of_the_warm_up_and_its_end_is_foretold() -> None:
    at = harm_at(leaking(100 * MB), noise=5 * MB)
    assert at is not None
    assert warm_up(WATCH) < at < WATCH / 2

    held = [Held(seconds, leaking(100 * MB)(seconds)) for seconds in range(0, 900, 5)]
    seen = growth(held, WATCH, 6 * GB)
    assert seen is not None
    assert seen.slope * 60 == pytest.approx(100 * MB)
    assert seen.used_up == pytest.approx(3600)


CALM: dict[str, Curve] = {
    "level": lambda seconds: 2 * GB,
    "a plateau soon": lambda seconds: 2 * GB + 100 * MB * min(seconds, 600) / 60,
    "settling": lambda seconds: 4 * GB - 2 * GB * math.exp(-seconds / 300),
    "a step": lambda seconds: 2 * GB + (GB if seconds > 900 else 0),
    "saw teeth": lambda seconds: 2 * GB + 500 * MB * (seconds % 300) / 300,
    "shrinking": lambda seconds: 2 * GB - 100 * MB * seconds / 60,
}


@pytest.mark.parametrize("name", CALM)
def test_what_does_not_grow_for_good_is_no_harm(name: str) -> None:
    assert [harm_at(CALM[name], noise=10 * MB, seed=seed) for seed in range(5)] == [None] * 5


def test_noise_around_a_level_is_called_harm_in_no_more_watches_than_alpha_says() -> None:
    assert sum(harm_at(CALM["level"], noise=50 * MB, left=GB, seed=seed) is not None for seed in range(40)) == 0


def test_a_leak_that_begins_late_is_found_too() -> None:
    at = harm_at(lambda seconds: 2 * GB + 100 * MB * max(0.0, seconds - 900) / 60, noise=2 * MB)
    assert at is not None
    assert 900 < at < 1600


def test_what_is_used_up_before_the_watch_ends_is_not_waited_for() -> None:
    fast, slow = harm_at(leaking(500 * MB), left=10 * GB), harm_at(leaking(50 * MB), left=10 * GB)
    assert fast is not None
    assert slow is not None
    assert fast < slow - 100


def test_growth_that_takes_longer_than_a_day_is_not_judged() -> None:
    slow = 8 * GB / (WITHIN * 1.2) * 60
    assert harm_at(leaking(slow)) is None
    assert harm_at(leaking(slow), left=4 * GB) is not None


def test_taking_again_what_the_old_process_held_is_no_leak() -> None:
    assert harm_at(leaking(100 * MB), before=6 * GB) is None
    assert harm_at(leaking(100 * MB), before=2.5 * GB) is not None


def test_without_knowing_what_is_left_nothing_is_foretold_and_nothing_judged() -> None:
    seen = growth([Held(seconds, leaking(100 * MB)(seconds)) for seconds in range(0, 900, 5)], WATCH, None)
    assert seen is not None
    assert seen.used_up is None
    assert not seen.harms(ALPHA, None, WATCH)


def test_too_few_looks_say_nothing() -> None:
    assert growth([], WATCH, GB) is None
    assert growth([Held(seconds, GB) for seconds in range(0, int(warm_up(WATCH)), 5)], WATCH, GB) is None


def test_the_looks_at_one_moment_do_not_change_what_earlier_ones_said() -> None:
    held = [Held(seconds, leaking(100 * MB)(seconds)) for seconds in range(0, 900, 5)]
    later = [*held, Held(900.0, 9e9)]
    assert isinstance(growth(held, WATCH, GB), Growth)
    assert growth(later, WATCH, GB) == growth([*held, Held(900.0, 2e9)], WATCH, GB)
