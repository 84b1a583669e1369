"""The project file `changectl.toml`: where a project's database, inventory and services lie."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from pydantic import Field

from changectl.core.declared.fields import AbsolutePath, Lease, ProjectPath
from changectl.core.declared.grammar import Grammar, validate
from changectl.core.declared.source import Path, Place, Source, decode
from changectl.core.errors import InputError, Problem

FILE_NAME = "changectl.toml"
_KEY = re.compile(r"""\s*(?:\[+\s*)?["']?([A-Za-z0-9_-]+)["']?""")
_TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


class ProjectFile(Grammar):
    """The keys of `changectl.toml`; all optional, paths relative to the file's folder."""

    database: ProjectPath = Field(".changectl/changectl.db", description="SQLite file with history and evidence")
    inventory: ProjectPath = Field("inventory", description="Ansible inventory: a file, or a folder with hosts.yml")
    services: ProjectPath | None = Field(None, description="folder of service files; default: beside the inventory")
    key_file: ProjectPath = Field(".changectl/key", description="key that encrypts saved configuration")
    state_dir: AbsolutePath | None = Field(None, description="changectl's folder on the hosts")
    lease: Lease | None = Field(None, description="how long a host waits for a sign of life before it restores")


@dataclass(frozen=True, slots=True)
class Project:
    """A project with all places resolved. Paths in plans and services are relative to `root`."""

    root: PurePath
    file: PurePath | None  # None: there is no project file, defaults hold
    database: PurePath
    inventory: PurePath  # what Ansible is given
    services: PurePath
    key_file: PurePath
    state_dir: str | None = None
    lease: float | None = None


def load(content: bytes | str, file: str) -> ProjectFile:
    """Read a project file.

    Raises:
        InputError: not TOML, or unknown keys or values; with lines.
    """
    text = decode(content, file)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(_not_toml(text, str(error), file)) from None
    values, keys = _places(text)
    return validate(Source(file, _as_text(data), values, keys), ProjectFile)


def _not_toml(text: str, said: str, file: str) -> Problem:
    match = _TOML_PLACE.search(said)
    lines = text.splitlines()
    line, column = (int(match[1]), int(match[2])) if match else (max(1, len(lines)), 1)
    hint = 'write lines like `inventory = "inventory/hosts.yml"`'
    return Problem(f"not readable as TOML: {_TOML_PLACE.sub('', said).strip()}", file, line, column, hint=hint)


def _as_text(data: Mapping[str, Any]) -> dict[str, Any]:
    """TOML's own types as text, which is what the grammar reads; tables stay, and are refused there."""
    return {key: str(value) if isinstance(value, int | float) else value for key, value in data.items()}


def _places(text: str) -> tuple[dict[Path, Place], dict[Path, Place]]:
    """Where the top-level keys and their values stand (tomllib does not say)."""
    values: dict[Path, Place] = {(): Place(1, 1)}
    keys: dict[Path, Place] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _KEY.match(line)
        if match and (match[1],) not in keys:
            keys[(match[1],)] = Place(number, match.start(1) + 1)
            rest = line[line.find("=", match.end()) + 1 :]
            values[(match[1],)] = Place(number, len(line) - len(rest.lstrip()) + 1)
    return values, keys
