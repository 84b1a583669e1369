"""Inference servers: one file per engine, each with `ENGINE`, or `make(description)` where the service describes it."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from changectl.core.engine import Engine
from changectl.core.errors import InputError, Problem


def names() -> list[str]:
    """Every engine there is a file for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(spec: str | Mapping[str, Any]) -> Engine:
    """The engine of a service: a name, or `{generic: {...}}` as the service file writes it.

    Raises:
        InputError: unknown engine (the known ones are listed), or a description that is missing or not understood.
    """
    name, description = (spec, None) if isinstance(spec, str) else _described(spec)
    if name not in names():
        raise InputError(Problem(f"unknown engine {name!r}", path="engine", hint=f"known: {', '.join(names())}"))
    module = import_module(f"{__name__}.{name}")
    if description is not None and not hasattr(module, "make"):
        raise InputError(Problem(f"engine {name} takes no description", path="engine", hint=f"write: engine: {name}"))
    if hasattr(module, "make"):
        made: Engine = module.make({} if description is None else description)
        return made
    engine: Engine = module.ENGINE
    return engine


def _described(spec: Mapping[str, Any]) -> tuple[str, Any]:
    if len(spec) != 1:
        raise InputError(Problem("an engine is one name", path="engine", hint=f"known: {', '.join(names())}"))
    name, description = next(iter(spec.items()))
    return str(name), {} if description is None else description
