"""How an instance is taken out of service and put back: one file per way, each with `TRAFFIC`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from changectl.core.errors import InputError, Problem


class Traffic(Protocol):
    """Pure: says what has to be done, does nothing itself."""

    name: str
    controls: bool  # whether an instance can be taken out of service before it is stopped

    def steps_out(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The host calls, in order, that take the instance out of service."""

    def steps_in(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The host calls, in order, that put it back."""

    def impact(self) -> str:
        """What users notice while the instance restarts, in one sentence."""


def names() -> list[str]:
    """Every way there is a file for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(spec: str | Mapping[str, Any] | None) -> Traffic:
    """The service file's `traffic`: a name or `{NAME: {...}}`; left out, it is none.

    Raises:
        InputError: unknown; the known ones are listed.
    """
    name = "none" if spec is None else spec if isinstance(spec, str) else next(iter(spec), "")
    if name not in names():
        raise InputError(Problem(f"unknown traffic {name!r}", path="traffic", hint=f"known: {', '.join(names())}"))
    traffic: Traffic = import_module(f"{__name__}.{name}").TRAFFIC
    return traffic
