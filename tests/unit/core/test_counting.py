"""Numbers of things are told as people do."""

from __future__ import annotations

from changectl.core.counting import counted


def test_only_one_is_singular() -> None:
    assert [counted(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
