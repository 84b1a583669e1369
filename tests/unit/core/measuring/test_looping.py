"""Which answers run in loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.measuring.looping import LEAST, TIMES, loops

PROSE = (
    "The harbour lies on the east side of the island. Ships of up to forty metres may enter at any tide; larger ones "
    "wait for the pilot, who comes out twice a day. In winter the ice closes it for some weeks, and mail comes by air."
)
LIST = "\n".join(f"{number}. Item {number} costs {number * 3} crowns." for number in range(1, 13))


@pytest.mark.parametrize("text", ["", "ok", PROSE, LIST, "-" * 40, "yes " * 10, PROSE + "\n" + "-" * 80])
def test_prose_lists_and_short_answers_do_not(text: str) -> None:
    assert not loops(text)


@pytest.mark.parametrize(
    "text", ["!" * 500, "the " * 40, "I am sorry, but " * 12, PROSE[:80] + " and so on" * 30, "a\nb\nc\n" * 20 + "a\n"]
)
def test_the_same_piece_again_and_again_to_the_end_does(text: str) -> None:
    assert loops(text)


@given(st.text(min_size=1, max_size=20), st.text(max_size=100))
def test_whatever_comes_before_a_long_loop_it_is_found(piece: str, before: str) -> None:
    times = max(TIMES + 1, 2 * (LEAST + len(before)) // len(piece) + 2)
    assert loops(before + piece * times) or not (piece * times).strip()


@given(st.text(alphabet="abcdefghij", min_size=60, max_size=300))
def test_what_loops_ends_with_a_piece_four_times(text: str) -> None:
    ends = any(text.endswith(text[-length:] * TIMES) for length in range(1, len(text) // TIMES + 1))
    assert ends or not loops(text)
