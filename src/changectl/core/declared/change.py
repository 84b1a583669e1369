"""What every kind of change that sets one named value has in common."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, model_validator

from changectl.core.declared.fields import Line, SettingValue
from changectl.core.declared.grammar import Fault, Grammar, faults
from changectl.core.settings import ABSENT, Value

CONTROL_FREE = re.compile(r"[^\s\x00-\x1f\x7f]+")


class ChangeSpec(Grammar):
    """The settings of one change, as its kind declares them: the base that every kind's model extends."""

    def describe(self) -> str:
        """The change in a few words, for example `parameter max-num-seqs: absent -> 128`."""
        raise NotImplementedError


class ValueChange(ChangeSpec):
    """One named value goes from what it is (asserted where `from` is given) to what it shall be."""

    name: Line = Field(description="what is changed", examples=["max-num-seqs"])
    from_: SettingValue = Field(
        None, alias="from", description="what it has to be now; a different value refuses the change", examples=["64"]
    )
    to: SettingValue = Field(description="what it shall be; `absent` takes it out", examples=["128"])

    @property
    def from_given(self) -> bool:
        """Whether the plan asserts the present value (an asserted `absent` is not the same as no assertion)."""
        return "from_" in self.model_fields_set

    @model_validator(mode="after")
    def _has_to_change_something(self) -> Self:
        if self.from_given and self.from_ == self.to:
            message = f"`from` and `to` are the same ({show_value(self.to)}): nothing would change"
            raise faults([Fault(message, "write the new value under `to`", ("to",))])
        return self

    def change_in_words(self) -> str:
        """`64 -> 128`; a present value that the plan does not assert reads `whatever it is`."""
        before = show_value(self.from_) if self.from_given else "whatever it is"
        return f"{before} -> {show_value(self.to)}"


def show_value(value: Value) -> str:
    """A value for people: `absent`, an empty text in quotes, the text itself otherwise."""
    if value is None:
        return ABSENT
    return value if value and value == value.strip() else f'"{value}"'
