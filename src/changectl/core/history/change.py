"""The change of a recorded step: as its plan declared it, and as the hosts had it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.history.events import CALIBRATION, mapping_of, text_of
from changectl.core.settings import ABSENT

_UNKNOWN = "not known"  # how a value that could not be read was recorded


@dataclass(frozen=True, slots=True)
class ChangeText:
    """The one change of a step."""

    kind: str
    name: str
    before: str | None  # None with `asserted`: absent; without: the plan does not say
    after: str | None  # None: absent
    asserted: bool
    found: tuple[str | None, ...] = ()  # what the files held before, each value once; None: absent; empty: not recorded
    engine_name: str | None = None  # the setting's name in the engine's own words; None: not recorded

    @property
    def in_words(self) -> str:
        """The change without its kind: `max-num-seqs: 64 -> 128`."""
        if self.kind == CALIBRATION:
            return "calibration: nothing is changed"
        return f"{self.name}: {self._before} -> {_value(self.after)}"

    @property
    def _before(self) -> str:
        if self.asserted:
            return _value(self.before)
        return f"{' or '.join(map(_value, self.found))} (as found)" if self.found else "whatever it was"

    def is_about(self, name: str, alike: Collection[str] = ()) -> bool:
        """Whether this changes the setting or variable of that name.

        Args:
            name: in any spelling: `--max_num_seqs`, `max-num-seqs`.
            alike: other names of the same setting: canonical, of engines.
        """
        if _plain(name) == _plain(self.name):
            return True
        # Where the record has the engine's own name, a common word does not stand for another engine's setting.
        return _plain(self.engine_name or self.name) in {_plain(one) for one in (name, *alike)}

    def __str__(self) -> str:
        return self.in_words if self.kind == CALIBRATION else f"{self.kind} {self.in_words}"


def change_text(body: Mapping[str, Any], summary: str = "", facts: Sequence[Mapping[str, Any]] = ()) -> ChangeText:
    """The change of a step.

    Args:
        body: what `run.opened` says of it.
        summary: the plan's own wording of it.
        facts: those of the `contact` with each instance.
    """
    values = [body.get(name) for name in ("from", "to")]
    before, after = (None if value is None or value == ABSENT else str(value) for value in values)
    # An asserted absence and no assertion are both recorded as null; only the wording tells them apart.
    asserted = "from" in body and (before is not None or "whatever it is" not in summary)
    seen = [mapping_of(fact, "values") for fact in facts]
    names = [name for one in seen if (name := text_of(one, "name"))]
    found = [text for one in seen if (text := text_of(one, "file")) and not text.startswith(_UNKNOWN)]
    return ChangeText(
        text_of(body, "kind"),
        text_of(body, "name"),
        before,
        after,
        asserted,
        tuple(dict.fromkeys(map(_unquoted, found))),
        names[0] if names else None,
    )


def found_value(facts: Mapping[str, Any]) -> str | None:
    """What an instance's file held, by the facts of its `contact`; None: absent, or not recorded."""
    text = text_of(mapping_of(facts, "values"), "file")
    return _unquoted(text) if text and not text.startswith(_UNKNOWN) else None


def _unquoted(text: str) -> str | None:
    """A value as a contact records it: quoted, or `absent`."""
    if text == ABSENT:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def _value(value: str | None) -> str:
    return ABSENT if value is None else value or '""'


def _plain(name: str) -> str:
    """Settings are found by any of their spellings: --max_num_seqs, max-num-seqs."""
    return name.lstrip("-").replace("_", "-").lower()
