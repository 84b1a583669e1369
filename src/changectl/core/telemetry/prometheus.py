"""A strict reader of the Prometheus text format: names exactly as written, nothing guessed, nothing matched by prefix.

Strict, because a metric read from a half-written or foreign page would become evidence: a line that is not understood
is an error, never a skipped line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"(?P<name>{_NAME})\s*(?:\{{(?P<labels>.*)\}})?\s*(?P<value>\S+)(?:\s+(?P<time>-?\d+))?\s*")
_LABEL = re.compile(r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\\n]|\\[\\"n])*)"\s*(?P<comma>,|$)')
_NUMBER = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


class PageError(ValueError):
    """The text is not a Prometheus page; the message names the line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a page: a series and its value at the time of the scrape."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """A whole page. A missing series stays missing: it is None, never zero."""

    samples: Sequence[Sample]
    types: Mapping[str, str] = field(default_factory=dict)  # family name -> counter, gauge, histogram, ...

    def find(self, name: str, **labels: str) -> list[Sample]:
        """All series of exactly this name whose labels include `labels`.

        A counter is found with and without its `_total` ending, since engines and client libraries add or drop it;
        the name as given wins where both exist.
        """
        for spelling in _spellings(name):
            found = [sample for sample in self.samples if sample.name == spelling]
            if found:
                return [sample for sample in found if all(sample.labels.get(k) == v for k, v in labels.items())]
        return []

    def total(self, name: str, **labels: str) -> float | None:
        """The sum over the matching series (several engines, several models); None: no series, or no number."""
        found = self.find(name, **labels)
        if not found:
            return None
        if not all(map(_finite, found)):
            return None
        try:
            return math.fsum(sample.value for sample in found)
        except OverflowError:  # each is a number, and their sum is none
            return None

    def labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of an `_info` series; None when there is none or more than one (then nothing can be said)."""
        found = self.find(name)
        return found[0].labels if len(found) == 1 else None


def parse(text: str) -> Metrics:
    """Read a page.

    Raises:
        PageError: a line is neither comment nor sample, a label set is broken, or a series appears twice.
    """
    samples: list[Sample] = []
    types: dict[str, str] = {}
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for number, line in _lines(text):
        if line.startswith("#"):
            words = line.split(maxsplit=3)
            if len(words) == 4 and words[:2] == ["#", "TYPE"]:
                types[words[2]] = words[3].strip()
            continue
        sample = _sample(line, number)
        series = (sample.name, tuple(sorted(sample.labels.items())))
        if series in seen:
            raise PageError(f"line {number}: the series {sample.name} with the same labels appears twice")
        seen.add(series)
        samples.append(sample)
    return Metrics(tuple(samples), types)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # Only "\n" ends a line here; other separators may stand inside a label's value.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip(" \t\r")
        if stripped:
            yield number, stripped


def _sample(line: str, number: int) -> Sample:
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise PageError(f"line {number}: not a sample: {line[:80]!r}")
    labels = _labels(match["labels"], number) if match["labels"] is not None else {}
    return Sample(match["name"], labels, _value(match["value"], number))


def _labels(text: str, number: int) -> dict[str, str]:
    labels: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _LABEL.match(text, position)
        if match is None or match["name"] in labels:
            raise PageError(f"line {number}: broken labels: {{{text[:80]}}}")
        labels[match["name"]] = re.sub(r'\\[\\"n]', lambda found: _ESCAPES[found[0]], match["value"])
        position = match.end()
    return labels


def _value(text: str, number: int) -> float:
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    if not _NUMBER.fullmatch(text):
        raise PageError(f"line {number}: not a number: {text[:40]!r}")
    return float(text)


def _spellings(name: str) -> tuple[str, str]:
    return (name, name.removesuffix("_total")) if name.endswith("_total") else (name, f"{name}_total")


def _finite(sample: Sample) -> bool:
    return math.isfinite(sample.value)
