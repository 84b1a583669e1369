"""Numbers of things in words: one file, two files."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`; the thing's plural takes an s."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
