"""What all engines share: finding a setting by any of its names, comparing values, asking for help, reading logs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from changectl.core.engine import Capacity, Cause, FailureLine, MemoryNeed, Pages, Source
from changectl.core.errors import InputError, Problem
from changectl.core.settings import Setting, Value
from changectl.core.telemetry.engine_series import MetricTable
from changectl.engines import _help, _logs, _process, _values


class BaseEngine:
    """Defaults for an engine with a table of settings; a member overrides what its engine does differently."""

    name: str
    versions: str
    settings: Sequence[Setting] = ()
    protocols: Sequence[str] = ("openai_completions", "openai_chat")
    precedence: Sequence[Source] = ("flags", "file", "env")
    has_help: bool = True
    underscores: bool = False
    suffixes: ClassVar[bool] = False  # whole numbers may be written 1k, 2M
    failure_lines: Sequence[FailureLine] = _logs.COMMON
    metric_table: MetricTable = MetricTable()

    @property
    def healthy_status(self) -> int:
        """As nearly all of them say it."""
        return 200

    def setting(self, name: str) -> Setting:
        """Find a setting by canonical name, engine name, flag, environment variable or file key.

        Raises:
            InputError: unknown; the text lists the nearest names.
        """
        wanted = _plain(name)
        for row in self.settings:
            if wanted in {_plain(word) for word in _names(row)} or (row.negation and wanted == _plain(row.negation)):
                return row
        words = sorted({word for row in self.settings for word in (row.name, row.canonical or row.name)})
        near = difflib.get_close_matches(name.strip("-").replace("_", "-"), words, n=3, cutoff=0.5)
        known = f"perhaps: {', '.join(near)}" if near else f"known: {', '.join(words)}"
        raise InputError(Problem(f"engine {self.name} has no setting {name!r}", hint=known))

    def unfit(self, setting: Setting, text: str) -> str:  # noqa: ARG002 - part of the protocol
        """Nothing: engines take words beside numbers (`auto`), and the running one's own help has the last word."""
        return ""

    def version(self, pages: Pages, log: Sequence[str] = ()) -> str | None:  # noqa: ARG002 - part of the protocol
        """Not reported."""
        return None

    def capacity(self, pages: Pages, log: Sequence[str] = ()) -> Capacity:  # noqa: ARG002 - part of the protocol
        """Not reported."""
        return Capacity()

    def running(self, argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
        """Settings as the process was given them, the stronger source winning; by setting name."""
        sources = {
            "flags": _process.flags_given(argv, self.settings, underscores=self.underscores),
            "env": _process.environment_given(environ, self.settings),
            "file": {},  # a file's values do not show in the process
        }
        merged: dict[str, str] = {}
        for source in reversed(self.precedence):
            merged |= sources[source]
        return merged

    def command_without(self, argv: Sequence[str], setting: Setting | None) -> list[str]:
        """The command line without the words that give the setting, by their places."""
        if setting is None:
            return list(argv)
        table = self.settings if setting in self.settings else (*self.settings, setting)
        return _process.without(argv, setting, table, underscores=self.underscores)

    def drain_seconds(self, argv: Sequence[str], environ: Mapping[str, str]) -> float:  # noqa: ARG002
        """Ends at once when told to."""
        return 0.0

    def help_argv(self, argv: Sequence[str]) -> list[str]:
        """The running program with nothing but its help flag; empty: it cannot be asked."""
        words = _process.program(argv)
        return [*words, "--help"] if words and self.has_help else []

    def knows(self, help_text: str, setting: Setting) -> bool | None:
        """Whether the help lists the setting; None: this is no help text of the engine."""
        return _help.lists(help_text, setting, self.settings, underscores=self.underscores)

    def value_problem(self, setting: Setting, value: str, help_text: str | None = None) -> str | None:
        """Why the value is impossible: its type, its range, or the help's own list of choices."""
        found = _values.problem(setting, value, suffixes=self.suffixes)
        if found or not help_text:
            return found
        allowed = _help.choices(help_text, setting)
        if allowed and not _help.allows(allowed, value) and not any(self.same(setting, value, one) for one in allowed):
            return f"{setting.name} allows {', '.join(allowed)}; not {value!r}"
        return None

    def same(self, setting: Setting, one: Value, other: Value) -> bool:
        """Whether two spellings mean the same value; absent equals only absent."""
        return _values.same(setting, one, other, suffixes=self.suffixes)

    def took_effect(self, setting: Setting, wanted: str, reported: str) -> bool:
        """Whether the engine reports what was asked for."""
        return self.same(setting, wanted, reported)

    def cross_rules(self, values: Mapping[str, str]) -> list[str]:  # noqa: ARG002 - part of the protocol
        """No rules between settings are known."""
        return []

    def memory_need(self, values: Mapping[str, str], facts: Mapping[str, Any]) -> MemoryNeed | None:  # noqa: ARG002
        """Cannot be computed."""
        return None

    def deepest_cause(self, log: Sequence[str]) -> Cause | None:
        """The earliest line with a known specific cause."""
        return _logs.first_known(log, self.failure_lines)

    def number(self, values: Mapping[str, str], name: str) -> int | None:
        """A whole number among values by setting name; None: absent or not a number."""
        text = values.get(name)
        return None if text is None else _values.parse_int(text, suffixes=self.suffixes)


def _names(row: Setting) -> list[str]:
    return [word for word in (row.name, row.canonical, row.env, row.key, *row.flags) if word]


def _plain(name: str) -> str:
    """Dashes in front and the difference of "-" and "_" do not matter; one-letter flags keep their dash and case."""
    if name.startswith("-") and not name.startswith("--"):
        return name
    return name.lstrip("-").replace("_", "-").lower()
