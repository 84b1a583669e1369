"""Kinds of change: one file per kind, named as plans name it. A new kind is one new file."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Protocol, cast

from changectl.core.declared.change import ChangeSpec
from changectl.core.declared.grammar import nearest
from changectl.core.declared.wanted import Wanted
from changectl.core.engine import Engine
from changectl.core.errors import InputError, Problem


class Kind(Protocol):
    """What a kind's module has to offer.

    `Spec` is the grammar of what stands below the kind's name in a step; `EXAMPLE` is a step's `change` as YAML;
    `RESTARTS` says whether the engine has to be started anew for the change to count.
    """

    Spec: type[ChangeSpec]
    EXAMPLE: str
    RESTARTS: bool

    def wanted(self, spec: Any, engine: Engine) -> Wanted:
        """What a step with this `spec` asks for, in terms of files."""


def names() -> list[str]:
    """The kinds of change: the files of this folder."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))


def load(name: str) -> Kind:
    """The kind's module.

    Raises:
        InputError: no such kind; the hint lists the known ones.
    """
    if name not in names():
        raise InputError(Problem(f"unknown kind of change `{name}`", hint=nearest(name, names())))
    return cast(Kind, importlib.import_module(f"{__name__}.{name}"))


def specs() -> dict[str, type[ChangeSpec]]:
    """The grammar of every kind, by name."""
    return {name: load(name).Spec for name in names()}
