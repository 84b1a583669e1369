"""The time that a change takes is told from earlier times, or it says what of it is not known."""

from __future__ import annotations

import pytest
from tests.unit.reports.block_text import lines

from changectl.core.cost import Span, Spent, StartCost
from changectl.reports.preview import Impact, step_blocks, step_json


def span(least: float, most: float | None = None) -> Span:
    return Span(least, least if most is None else most)


SLOW, QUICK = StartCost(span(20.0), span(30.0)), StartCost(span(3.1, 3.4), span(4.7, 6.6))


@pytest.mark.parametrize(
    ("impact", "most", "words"),
    [
        (Impact(1, 1, span(40.0), SLOW), 60.0, "about 60s, and about 30s more if it is not kept"),
        (Impact(3, 2, span(240.0), SLOW), 360.0, "about 6m, and about 30s more if it is not kept"),
        (Impact(1, 1, span(26.0, 34.0), QUICK), 37.4, "29s to 37s, and 4.7s to 6.6s more if it is not kept"),
        (
            Impact(1, 1, span(40.0), None),
            None,
            "not known: no run has recorded the time of a start yet; the measurements take about 40s",
        ),
        (
            Impact(2, 2, None, SLOW),
            None,
            "not known: the measurements were never timed; 4 starts: about 80s; about 30s more if it is not kept",
        ),
        (
            Impact(1, 1, None, None),
            None,
            "not known: no run has recorded the time of a start and of the measurements yet",
        ),
        (Impact(0, 1, span(40.0), SLOW), 0.0, "0s: there is nothing to do"),
    ],
)
def test_the_time_in_all_adds_up_starts_and_measurements(impact: Impact, most: float | None, words: str) -> None:
    assert (None if impact.total is None else impact.total.most) == most
    assert str(impact) == words


def test_a_start_costs_what_its_outage_was_and_the_way_back_has_its_own() -> None:
    known, unknown = Impact(1, 1, span(26.0, 34.0), QUICK), Impact(1, 1, None, None)
    told, untold = ("\n".join(lines(step_blocks(1, "x", "", impact, "40 requests"))) for impact in (known, unknown))

    assert "26s to 34s, 40 requests" in told
    assert "about 3.4s, as lately; the way back 4.7s to 6.6s" in told
    assert "not recorded yet" in untold


def test_machines_get_the_longest_time() -> None:
    document = step_json("more slots", "", Impact(1, 1, span(26.0, 34.0), QUICK), [])
    assert [document[name] for name in ("measuring_seconds", "load_seconds", "total_seconds")] == [34.0, 3.4, 37.4]
    assert step_json("more slots", "", Impact(1, 1, None, None), [])["total_seconds"] is None


def test_only_lately_counts_and_a_way_back_that_was_never_needed_is_a_start_too() -> None:
    assert Span.of([90.0, 1.0, 2.0, 3.0, 4.0, 5.0]) == Span(1.0, 5.0)
    assert Span.of([]) is None
    assert Spent(starts=[3.0]).start_cost == StartCost(span(3.0), span(3.0))
    assert Spent(ways_back=[5.0]).start_cost == StartCost(span(5.0), span(5.0))
    assert Spent(phases=[5.0]).start_cost is None
