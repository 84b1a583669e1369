"""What starts the service's process: one file per manager, each with `MANAGER`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from changectl.core.errors import InputError, Problem
from changectl.core.manager import Manager


def names() -> list[str]:
    """Every manager there is a file for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(spec: str | Mapping[str, Any]) -> Manager:
    """The manager of a service: its name, or the service file's `manager: {NAME: {...}}`.

    Raises:
        InputError: unknown; the known ones are listed.
    """
    if not isinstance(spec, str) and len(spec) != 1:
        raise InputError(Problem("a manager is one name", path="manager", hint=f"known: {', '.join(names())}"))
    name = spec if isinstance(spec, str) else next(iter(spec))
    if name not in names():
        raise InputError(Problem(f"unknown manager {name!r}", path="manager", hint=f"known: {', '.join(names())}"))
    manager: Manager = import_module(f"{__name__}.{name}").MANAGER
    return manager
