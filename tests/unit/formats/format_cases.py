"""What every format's case tables share: one case is a file, a key, a new value, and the bytes or the refusal."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key, Value


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    key: Key
    to: Value
    carrier: Carrier
    find: str = ""  # the part that changes ...
    becomes: str = ""  # ... and what it is afterwards
    refusal: str = ""  # or: words of the refusal
    before: Value = None  # what reads before; not looked at in refusals

    def data(self) -> bytes:
        return self.text.encode("utf-8", "surrogateescape")

    def expected(self) -> bytes:
        assert self.text.count(self.find) == 1, f"{self.find!r} does not stand exactly once in the case's file"
        return self.text.replace(self.find, self.becomes).encode("utf-8", "surrogateescape")


def check(case: Case) -> None:
    """Run one case; a kept one also comes back byte by byte through the saved bytes' own value where it can."""
    if case.refusal:
        with pytest.raises(EditRefused, match=case.refusal):
            formats.edit(case.data(), case.carrier, case.key, case.to)
        return
    assert formats.read(case.data(), case.carrier, case.key).value == case.before
    edited = formats.edit(case.data(), case.carrier, case.key, case.to)
    assert edited == case.expected()
    assert formats.edit(edited, case.carrier, case.key, case.to) == edited


def parametrized(cases: list[Case]) -> pytest.MarkDecorator:
    assert len({case.name for case in cases}) == len(cases), "two cases have the same name"
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name.replace(" ", "-"))
