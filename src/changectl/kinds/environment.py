"""Kind `environment`: one environment variable of the service's process."""

from __future__ import annotations

import re

from pydantic import field_validator

from changectl.core.declared.change import ValueChange
from changectl.core.declared.grammar import fault
from changectl.core.declared.wanted import Wanted
from changectl.core.engine import Engine

EXAMPLE = 'change: {environment: {name: OMP_NUM_THREADS, from: "1", to: "2"}}'
RESTARTS = True

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Spec(ValueChange):
    """An environment variable, set where the service's manager takes its environment from."""

    @field_validator("name")
    @classmethod
    def _named_like_a_variable(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            hint = "use letters, digits and `_`, like `OMP_NUM_THREADS`, and put the value under `to`"
            raise fault(f"`{name}` cannot be the name of an environment variable", hint)
        return name

    def describe(self) -> str:
        """`environment OMP_NUM_THREADS: 1 -> 2`."""
        return f"environment {self.name}: {self.change_in_words()}"


def wanted(spec: Spec, engine: Engine) -> Wanted:
    """The change in terms of files: a plain variable; what the engine makes of it is looked at after the start."""
    twin = next((setting for setting in engine.settings if setting.env == spec.name), None)
    return Wanted("environment", spec.name, None, spec.to, spec.from_, spec.from_given, twin)
