"""How an instance is taken out of service and put back: one file per way, each with `make`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from changectl.core.declared.traffic_spec import NONE, Peer, TrafficSpec
from changectl.core.errors import InputError, Problem


class Traffic(Protocol):
    """Pure: says what has to be done, does nothing itself."""

    @property
    def name(self) -> str:
        """The way's own name."""

    @property
    def controls(self) -> bool:
        """Whether an instance can be taken out of service before it is stopped."""

    @property
    def host(self) -> str | None:
        """The inventory host that switches; None: the instance's own."""

    @property
    def place(self) -> str:
        """What is held while an instance is out, in words of the balancer: nobody else changes it meanwhile."""

    @property
    def file(self) -> str | None:
        """The file on that host that says who gets requests; None: there is none."""

    @property
    def member(self) -> str | None:
        """The instance's address as the balancer reaches it, HOST:PORT; None: not known."""

    def way(self) -> Mapping[str, Any]:
        """How the host program switches: one key, the way's name."""

    def impact(self) -> str:
        """What users notice while the instance restarts, in one sentence."""

    def peers(self, data: bytes) -> tuple[Peer, ...] | None:
        """Who else is told to get requests by the file's bytes; None: it cannot be told.

        Raises:
            EditRefused: the file does not say it without doubt.
        """

    def taken_out(self, data: bytes) -> bytes | None:
        """The file's bytes with the instance out of service; None: it is out already, and not by us.

        Raises:
            EditRefused: the file does not say it without doubt.
        """

    def put_back(self, data: bytes) -> bytes:
        """The file's bytes with the instance in service again, whatever else somebody changed in them meanwhile.

        Raises:
            EditRefused: the file does not say it without doubt.
        """


def names() -> list[str]:
    """Every way there is a file for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(spec: TrafficSpec | str | None) -> Traffic:
    """The service file's `traffic`; left out, it is none.

    Raises:
        InputError: unknown; the known ones are listed.
    """
    name = spec.name if isinstance(spec, TrafficSpec) else spec or NONE
    if name not in names():
        raise InputError(Problem(f"unknown traffic {name!r}", path="traffic", hint=f"known: {', '.join(names())}"))
    traffic: Traffic = import_module(f"{__name__}.{name}").make(spec)
    return traffic
