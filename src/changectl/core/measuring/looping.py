"""Whether an answer repeats itself to its end: the same words again and again, as a damaged model writes them."""

from __future__ import annotations

LEAST = 60  # characters that have to repeat; a list with three equal lines is no loop
TIMES = 4  # so often the same piece has to stand there, one after the other
TAIL = 0.5  # of the text, from its end: a good answer may hold a row of dashes


def loops(text: str) -> bool:
    """Whether at least the last half of a text, and 60 characters of it, is one piece four times or more."""
    backwards = text.rstrip()[::-1]
    least = max(LEAST, int(TAIL * len(backwards)))
    borders = _borders(backwards)
    return any(
        length - borders[length - 1] <= length / TIMES for length in range(least, len(backwards) + 1) if length >= least
    )


def _borders(text: str) -> list[int]:
    """For each beginning of a text how long its longest border is (Knuth, Morris, Pratt): its period is the rest."""
    found = [0] * len(text)
    length = 0
    for index in range(1, len(text)):
        while length and text[index] != text[length]:
            length = found[length - 1]
        length += text[index] == text[length]
        found[index] = length
    return found
