"""What is changed and where it lives: settings, carriers, keys; words shared by all families."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# A setting's value as it stands in a file or on a command line; None: it is absent there. Absent is a state of its own:
# an engine's default moves with its version, so "absent" never stands for a number.
Value = str | None
ABSENT = "absent"  # how plans and people write it

SettingType = Literal["int", "float", "bool", "str", "json"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One parameter of an engine: its spellings in each carrier and where the engine itself reports it.

    A row of an engine's table. Tables are defaults: the running engine's own `--help` has the last word.
    """

    name: str  # the engine's long name without dashes: "max-num-seqs"
    flags: tuple[str, ...] = ()  # every spelling the engine accepts, the preferred one first: ("--parallel", "-np")
    env: str | None = None  # the environment variable with the same meaning
    key: str | None = None  # the name in the engine's own configuration file
    canonical: str | None = None  # the field's common word: "concurrency_limit"
    type: SettingType = "str"
    negation: str | None = None  # "--no-enable-prefix-caching"
    effective: str | None = None  # dotted place in Engine.effective's answer; None: the engine does not expose it
    minimum: float | None = None
    maximum: float | None = None
    changes_answers: bool = False  # changing it may change what the model says (B8)
    repeatable: bool = False  # every occurrence counts (Triton's --load-model); otherwise the last one wins
    note: str = ""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Where values live: a file (or a systemd unit with its drop-ins), its format, and the place inside it.

    `then` names a second format nested in the value found at `at` (flags inside a YAML list).
    """

    format: str  # flags, env, yaml, json, pattern
    file: str | None = None
    unit: str | None = None
    at: str | None = None  # dotted path: services.vllm.command; a list index is a number
    then: str | None = None
    match: str | None = None  # pattern only: one regular expression with the named group "value"

    def __str__(self) -> str:
        place = self.file or f"unit {self.unit}"
        inside = " ".join(part for part in (self.at, f"then {self.then}" if self.then else None) if part)
        return f"{place} ({self.format}{', ' + inside if inside else ''})"


@dataclass(frozen=True, slots=True)
class Key:
    """What to look for inside a carrier: a name in all its spellings."""

    names: tuple[str, ...]  # preferred first; flags with their dashes, environment and file keys without
    type: SettingType = "str"
    negation: str | None = None
    repeatable: bool = False
    underscores: bool = True  # for flags: "_" and "-" are the same in names (vLLM)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place in a file where a key stands."""

    value: str  # decoded: quotes and escapes resolved; a bare boolean flag reads "true", its negation "false"
    line: int  # 1-based
    spelling: str = ""  # as written: "--max_num_seqs"


@dataclass(frozen=True, slots=True)
class Reading:
    """All occurrences of a key in a carrier, in file order, and the one that counts."""

    occurrences: tuple[Occurrence, ...] = field(default=())

    @property
    def value(self) -> Value:
        """The effective value: the last occurrence's (last one wins in every format read here), or None."""
        return self.occurrences[-1].value if self.occurrences else None
