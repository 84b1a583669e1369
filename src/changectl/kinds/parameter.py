"""Kind `parameter`: one setting of the engine, wherever the service carries it (flag, file, environment)."""

from __future__ import annotations

import re

from pydantic import field_validator

from changectl.core.declared.change import ValueChange
from changectl.core.declared.grammar import fault
from changectl.core.declared.wanted import Wanted
from changectl.core.engine import Engine

EXAMPLE = "change: {parameter: {name: max-num-seqs, from: absent, to: 128}}"
RESTARTS = True

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Spec(ValueChange):
    """An engine's setting, named as the engine does (without dashes in front) or canonically (`concurrency_limit`)."""

    @field_validator("name")
    @classmethod
    def _named_without_dashes(cls, name: str) -> str:
        if name.startswith("-") and _NAME.fullmatch(name.lstrip("-")):
            raise fault(f"`{name}` is written as a flag", f"write the name without dashes: `{name.lstrip('-')}`")
        if not _NAME.fullmatch(name):
            raise fault(f"`{name}` cannot be the name of a parameter", "write one name, like `max-num-seqs`")
        return name

    def describe(self) -> str:
        """`parameter max-num-seqs: absent -> 128`."""
        return f"parameter {self.name}: {self.change_in_words()}"


def wanted(spec: Spec, engine: Engine) -> Wanted:
    """The change in terms of files. Raises InputError for a setting that the engine does not have."""
    return Wanted("parameter", spec.name, engine.setting(spec.name), spec.to, spec.from_, spec.from_given)
