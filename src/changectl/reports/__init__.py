"""What people and programs read: each report turns a value into blocks of text and into a JSON document.

Reports are pure: `printer.py` alone prints, and it is what makes foreign text harmless.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from changectl.core.errors import InputError, Problem

_HELPERS = {"printer"}


def names() -> list[str]:
    """The reports there are."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("_") and file.stem not in _HELPERS)


def load(name: str) -> ModuleType:
    """The report of that name. Raises InputError, listing the known ones, when there is none."""
    if name not in names():
        raise InputError(Problem(f'there is no report "{name}"', hint=f"known: {', '.join(names())}"))
    return import_module(f"{__name__}.{name}")
