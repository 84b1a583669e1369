"""Same conditions: what was so during a phase, and what differs between two phases beside the declared change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.command import different_arguments, quoted

SETTINGS = "settings"
ENVIRONMENT = "environment"
FILES = "files"
MODEL = "model"
COMMAND = "command"  # a list of words
PROGRAM = "program"  # which file runs, and all else that decides what it does beside its arguments
_CORE = (SETTINGS, FILES, MODEL)  # without these nobody can say what was compared
_NAMED = (SETTINGS, ENVIRONMENT, FILES)  # groups whose members a declaration may name without the group


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same before and after; None: not known, or not there."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key}: {_shown(self.before)} -> {_shown(self.after)}"


def _shown(value: Any) -> str:
    return "absent" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that must be equal between two measurements, by name.

    A fact is text, a number, a boolean, None (could not be read), a list of those, or a group: a mapping of name ->
    such a fact. Start parameters belong into the group "settings" (setting -> its values in order), so that a changed
    parameter is one difference and a moved one is none; variables into "environment" and digests of files into
    "files". The words of the command line go into "command", so that a difference names the word. Secrets go in as
    digests only.
    """

    facts: Mapping[str, Any]

    def flat(self) -> dict[str, Any]:
        """Every fact with its whole name: `settings.max-num-seqs`, `kernel`."""
        flat: dict[str, Any] = {}
        for name, value in self.facts.items():
            if isinstance(value, Mapping):
                flat.update({f"{name}.{member}": _comparable(inner) for member, inner in value.items()})
            else:
                flat[name] = _comparable(value)
        return dict(sorted(flat.items()))

    def unknown(self) -> tuple[str, ...]:
        """The names of the facts that could not be read: equality cannot be shown for them."""
        return tuple(name for name, value in self.flat().items() if value is None)

    def digest(self) -> str:
        """SHA-256 over names and values, independent of their order."""
        return hashlib.sha256(json.dumps(self.flat(), sort_keys=True, allow_nan=False).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return {name: _comparable(value) for name, value in self.facts.items()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Fingerprint:
        """What `to_json` wrote."""
        return cls(dict(raw))


def _comparable(value: Any) -> Any:
    """Tuples and lists are the same to a reader and to JSON."""
    if isinstance(value, Mapping):
        return {str(name): _comparable(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_comparable(inner) for inner in value]
    return value


def differences(before: Fingerprint, after: Fingerprint) -> list[Difference]:
    """Every fact that is not the same, by name; one that is known on one side only counts as different."""
    old, new = before.flat(), after.flat()
    found: list[Difference] = []
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key), new.get(key)
        if _same(one, other):
            continue
        if key == COMMAND and isinstance(one, list) and isinstance(other, list):
            program = old.get(PROGRAM)
            found += _arguments(one, other, same_program=program is not None and _same(program, new.get(PROGRAM)))
        else:
            found.append(Difference(key, one, other))
    return found


def _arguments(before: list[Any], after: list[Any], *, same_program: bool) -> list[Difference]:
    return [
        Difference(
            argument.name,
            None if argument.before is None else quoted(before[argument.before]),
            None if argument.after is None else quoted(after[argument.after]),
        )
        for argument in different_arguments(before, after, same_program=same_program)
    ]


def must_be_known(key: str) -> bool:
    """Whether two phases must not be compared at all while this fact was not read."""
    return key.partition(".")[0] in _CORE


def unknown(before: Fingerprint, after: Fingerprint) -> list[str]:
    """The names of the facts that at least one phase lacks: nothing may differ, and nothing is shown to be equal."""
    return sorted({*before.unknown(), *after.unknown()})


def _same(before: Any, after: Any) -> bool:
    # true and 1 are equal to Python, but not to a configuration
    return type(before) is type(after) and bool(before == after)


def single_difference(before: Fingerprint, after: Fingerprint, declared: Collection[str]) -> list[Difference]:
    """The differences that nobody declared; empty: the two may be compared.

    Args:
        before: the conditions of the first measurement.
        after: the conditions of the second one.
        declared: whole names (`settings.max-num-seqs`, `files./etc/x`), or bare names of settings, variables or files.
    """
    return [difference for difference in differences(before, after) if not _is_declared(difference.key, declared)]


def not_effective(before: Fingerprint, after: Fingerprint, declared: Collection[str]) -> list[str]:
    """The declared names for which nothing differs: the change did not arrive in what was read."""
    changed = [difference.key for difference in differences(before, after)]
    return [name for name in sorted(declared) if not any(_is_declared(key, (name,)) for key in changed)]


def _is_declared(key: str, declared: Collection[str]) -> bool:
    if key in declared:
        return True
    group, _, member = key.partition(".")
    return group in _NAMED and member in declared
