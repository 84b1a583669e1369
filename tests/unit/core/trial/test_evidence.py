"""Evidence of many guards at once."""

from __future__ import annotations

from itertools import combinations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from changectl.core.trial.evidence import ALPHA, HARM_PER_LOOK, KEEP_PER_LOOK, PER_LOOK, holm

p_values = st.lists(st.floats(0, 1), max_size=30)


def test_the_error_rate_of_counts_is_split_over_six_looks() -> None:
    assert pytest.approx(ALPHA) == 6 * PER_LOOK


def test_five_looks_spend_no_more_than_their_error_rate_whichever_they_are() -> None:
    """An effect that is not there, in standard errors, after one pair to eight: sums of independent pairs."""
    generator = numpy.random.default_rng(1)
    seen = numpy.cumsum(generator.normal(size=(200_000, 8)), axis=1) / numpy.sqrt(numpy.arange(1, 9))
    for alpha, per_look in ((ALPHA, KEEP_PER_LOOK), (0.01, HARM_PER_LOOK)):
        spent = [
            float((seen[:, [pairs - 1 for pairs in five]].max(axis=1) > ndtri(1 - per_look)).mean())
            for five in combinations(range(2, 9), 5)
        ]
        assert alpha * 0.9 < max(spent) < alpha * 1.05


def test_holm_multiplies_the_smallest_by_all_and_the_largest_by_one() -> None:
    assert holm([0.03, 0.01, 0.5]) == pytest.approx([0.06, 0.03, 0.5])
    assert holm([0.02, 0.021]) == pytest.approx([0.04, 0.04])  # never less than one with more evidence
    assert holm([]) == []


@given(p_values)
def test_it_lies_between_no_correction_and_bonferronis(evidence: list[float]) -> None:
    for raw, adjusted in zip(evidence, holm(evidence), strict=True):
        assert raw <= adjusted <= min(1.0, raw * len(evidence)) + 1e-12


@given(p_values.flatmap(lambda values: st.tuples(st.just(values), st.permutations(range(len(values))))))
def test_the_order_of_the_guards_does_not_matter(given_: tuple[list[float], list[int]]) -> None:
    values, places = given_
    plain = holm(values)
    assert holm([values[place] for place in places]) == [plain[place] for place in places]
