"""Writes the example project that `changectl init` starts people with."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath

from changectl.core.errors import InputError, Problem

_HINT = "nothing was written; choose an empty folder, or move the file away"


def write_project(directory: Path) -> list[Path]:
    """Write the example project; returns the files in the order of writing.

    Raises:
        InputError: a file exists already (nothing is written), or the folder cannot be written.
    """
    example = dict(_example(files("changectl") / "scaffold", PurePath()))
    existing = [directory / name for name in example if (directory / name).exists() or (directory / name).is_symlink()]
    if existing:
        raise InputError(Problem("this file exists already", str(path), hint=_HINT) for path in existing)
    written = []
    for name, content in example.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:  # never over a file that appeared meanwhile
                file.write(content)
        except OSError as error:
            raise InputError(Problem(f"cannot be written: {error.strerror or error}", str(path))) from None
        written.append(path)
    return written


def _example(folder: Traversable, inside: PurePath) -> list[tuple[PurePath, bytes]]:
    found: list[tuple[PurePath, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda one: (one.is_dir(), one.name)):
        if entry.is_dir():
            found += _example(entry, inside / entry.name)
        elif not entry.name.endswith((".py", ".pyc")):
            found.append((inside / entry.name, entry.read_bytes()))
    return found
