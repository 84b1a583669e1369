"""What the quality prompts of a workload were answered in one phase. They are sent as they are, and greedily."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from changectl.core.measuring.looping import loops
from changectl.core.measuring.records import OK, UNEXPECTED, Record, Records
from changectl.core.workload.entry import names

_DIGEST = 16  # characters of an answer's digest that tell it from others


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers to one quality prompt that came whole.

    Attributes:
        texts: digest of an answer -> how often it was given.
        looping: how many repeat themselves to their end, as far as they are recorded.
        wrong: how many are not what the workload expects; None: it expects nothing of this prompt.
    """

    texts: Mapping[str, int] = field(default_factory=dict)
    looping: int = 0
    wrong: int | None = None

    @property
    def n(self) -> int:
        """How many there are."""
        return sum(self.texts.values())

    @property
    def loops(self) -> bool:
        """Whether more than half of them repeat themselves to their end."""
        return 2 * self.looping > self.n

    def differ(self, other: Answers) -> float:
        """How probable it is that an answer from here and one from there are not the same."""
        same = sum(count * other.texts.get(text, 0) for text, count in self.texts.items())
        return 1 - same / (self.n * other.n)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Answers:
        """What `dataclasses.asdict` made of it. Raises KeyError or TypeError."""
        return cls(dict(raw["texts"]), raw["looping"], raw["wrong"])


def expecting(workload: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The prompts of a workload that name what has to be in their answer, as records call them."""
    return frozenset(name for entry in workload if isinstance(entry.get("expect"), Mapping) for name in names(entry))


def answers_of(records: Iterable[Record], expected: Collection[str]) -> dict[str, Answers]:
    """Quality prompt -> its answers in a phase, of all levels together.

    Args:
        records: of the phase, the warm-up left out; those with a text are of quality prompts.
        expected: the prompts that name what has to be in their answer.
    """
    found: dict[str, list[Record]] = {}
    every = Records.of(records)
    for record in every.only([text is not None for text in every.texts("text")]):
        if record.cls in (OK, UNEXPECTED):
            found.setdefault(record.prompt, []).append(record)
    return {
        prompt: Answers(
            dict(sorted(Counter((one.text_sha or "")[:_DIGEST] for one in own).items())),
            sum(loops(one.text or "") for one in own),
            sum(not one.ok for one in own) if prompt in expected else None,
        )
        for prompt, own in sorted(found.items())
    }
