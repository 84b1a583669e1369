"""The time that a change takes is one figure, or says what of it is not known."""

from __future__ import annotations

import pytest

from changectl.reports.preview import Impact


@pytest.mark.parametrize(
    ("impact", "total", "words"),
    [
        (Impact(1, 1, 40.0, 20.0), 60.0, "about 60s, and about 20s more if it is not kept"),
        (Impact(3, 2, 240.0, 60.0), 600.0, "about 10m, and about 60s more if it is not kept"),
        (Impact(1, 1, 40.0, None), None, "at least 40s; not known: the time of 1 start"),
        (Impact(2, 2, 80.0, None), None, "at least 80s; not known: the time of 4 starts"),
        (Impact(2, 2, None, 30.0), None, "at least 2m; not known: the time of the measurements"),
        (Impact(1, 1, None, None), None, "not known: the time of 1 start and the time of the measurements"),
        (Impact(0, 1, 40.0, 20.0), 0.0, "0s: there is nothing to do"),
    ],
)
def test_the_time_in_all_adds_up_starts_and_measurements(impact: Impact, total: float | None, words: str) -> None:
    assert impact.total == total
    assert str(impact) == words
