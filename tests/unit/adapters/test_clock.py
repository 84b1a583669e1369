"""The real clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from changectl.adapters.clock import SystemClock


def test_now_is_utc_with_microseconds() -> None:
    text = SystemClock().now()
    assert text.endswith("+00:00")
    assert len(text.partition(".")[2]) == len("123456+00:00")
    assert abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(seconds=5)


def test_sleeping_takes_the_time_it_should() -> None:
    clock = SystemClock()
    begun = clock.monotonic()
    clock.sleep(0.02)
    assert clock.monotonic() - begun >= 0.02
