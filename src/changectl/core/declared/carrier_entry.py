"""How a service file lists the places where values live."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, model_validator

from changectl.core.declared.fields import HostPath, Line, Unit, is_template
from changectl.core.declared.grammar import Fault, Grammar, faults, nearest
from changectl.core.settings import Carrier

FORMATS = ("env", "flags", "json", "pattern", "yaml")
UNIT_FORMATS = ("env", "flags")
NESTING_FORMATS = ("env", "json", "yaml")
_LATER_FORMATS = ("ini", "pbtxt", "toml")


class CarrierEntry(Grammar):
    """One place where values live, as a service file lists it."""

    file: HostPath | None = Field(None, description="a file on the host", examples=["/etc/vllm/chat.yaml"])
    unit: Unit | None = Field(None, description="a systemd unit with its drop-ins", examples=["vllm.service"])
    format: Line = Field(
        description="how the place is written", examples=["yaml"], json_schema_extra={"enum": [*FORMATS]}
    )
    at: Line | None = Field(
        None, description="dotted place inside yaml or json; for env the variable", examples=["services.vllm.command"]
    )
    then: Line | None = Field(None, description="format of the text found at `at`", examples=["flags"])
    match: str | None = Field(None, description="pattern: regular expression with the group `value`")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # What fits into a place can only be said once the place is clear.
        found = self._about_the_place() or [*self._about_the_format(), *self._about_the_pattern()]
        if found:
            raise faults(found)
        return self

    def _about_the_place(self) -> list[Fault]:
        if (self.file is None) == (self.unit is None):
            return [Fault("values live in a file or in a unit", "write exactly one of `file:` and `unit:`")]
        return []

    def _about_the_format(self) -> list[Fault]:
        if self.format in _LATER_FORMATS:
            supported = ", ".join(FORMATS)
            message = f"format `{self.format}` is not supported in this version (supported: {supported})"
            return [Fault(message, "`pattern` finds one value in any text file", ("format",))]
        if self.format not in FORMATS:
            return [Fault(f"unknown format `{self.format}`", nearest(self.format, FORMATS), ("format",))]
        found = []
        if self.unit is not None and self.format not in UNIT_FORMATS:
            message = f"a unit does not hold `{self.format}`"
            found.append(Fault(message, "write `format: flags` (ExecStart) or `format: env`", ("format",)))
        if self.at is not None and self.format == "env" and self.then is None:
            hint = "leave `at` out, or write `then: flags` when the variable holds options"
            found.append(Fault("`at` alone has no meaning in `env`", hint, ("at",), key=True))
        elif self.at is not None and self.format not in NESTING_FORMATS:
            found.append(Fault(f"`at` has no meaning in `{self.format}`", "leave `at` out", ("at",), key=True))
        if self.then is not None and self.at is None:
            found.append(
                Fault("`then` needs `at`", "write where the nested text lies: `at: services.vllm.command`", ("then",))
            )
        if self.then is not None and self.then != "flags":
            found.append(Fault(f"`then: {self.then}` is not known", "write `then: flags`", ("then",)))
        return found

    def _about_the_pattern(self) -> list[Fault]:
        example = r"write for example `match: '--workers (?P<value>\d+)'`"
        if self.format != "pattern":
            return (
                [Fault("`match` belongs to `format: pattern`", "leave it out", ("match",), key=True)]
                if self.match
                else []
            )
        if not self.match:
            return [Fault("`match` is missing", example, ("match",))]
        if is_template(self.match):
            return [Fault("a regular expression cannot be a template", example, ("match",))]
        try:
            groups = re.compile(self.match).groupindex
        except (re.error, OverflowError, RecursionError) as error:
            return [Fault(f"not a regular expression: {error}", example, ("match",))]
        return (
            []
            if list(groups) == ["value"]
            else [Fault("exactly one group, named `value`, belongs here", example, ("match",))]
        )

    def carrier(self, folder: str | None) -> Carrier:
        """The place in the words of formats; a relative file lies in the manager's working folder."""
        file = (
            self.file if self.file is None or self.file.startswith("/") else f"{folder}/{self.file.removeprefix('./')}"
        )
        return Carrier(self.format, file, self.unit, self.at, self.then, self.match)
