"""What a lease is taken on, and the lease itself, which several instances on one host share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from changectl.core.lease import Lease
from changectl.core.ports import Beating, HostAddress


class Leased(Protocol):
    """What a lease is taken on: a host, or one upstream of a balancer."""

    @property
    def name(self) -> str:
        """As people and the record know it."""

    @property
    def address(self) -> HostAddress:
        """The inventory host."""

    @property
    def promise(self) -> str:
        """What its dead-man does when the lease is over, as the end of a sentence."""

    def with_state(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a host call, with what says where its records lie."""

    def ask(self, call: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """One host call through the door."""


@dataclass
class Right:
    """The lease itself, which all instances of a run on one host share: whoever takes it anew takes it for all of them.

    Attributes:
        held: the lease; None: it was not taken, or given back.
        beating: its signs of life.
        needed_by: the run folders for which it was taken, and not given back yet.
    """

    held: Lease | None = None
    beating: Beating | None = field(default=None, repr=False)
    needed_by: set[str] = field(default_factory=set)
