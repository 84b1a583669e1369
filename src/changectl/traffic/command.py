"""The operator's own commands take an instance out of service and put it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.declared.traffic_spec import CommandTraffic, Peer, TrafficSpec


@dataclass(frozen=True)
class CommandSwitch:
    """What the commands do is their own affair: who else serves is not known, so the plan says what that may cost."""

    spec: CommandTraffic
    name = "command"
    controls = True
    file: str | None = None
    member: str | None = None

    @property
    def host(self) -> str | None:
        """Where the commands run."""
        return self.spec.host

    @property
    def place(self) -> str:
        """The commands themselves: the same ones are never run by two changes at a time."""
        words = json.dumps([self.spec.out, self.spec.back])
        return f"command-{hashlib.sha256(words.encode()).hexdigest()[:16]}"

    def way(self) -> Mapping[str, Any]:
        """Both commands, as lists of words."""
        return {"command": {"out": list(self.spec.out), "in": list(self.spec.back)}}

    def impact(self) -> str:
        """Said in the preview."""
        return "the instance is taken out of service by a command first: no request meets it while it restarts"

    def peers(self, data: bytes) -> tuple[Peer, ...] | None:  # noqa: ARG002 - part of the protocol
        """Not known."""
        return None

    def taken_out(self, data: bytes) -> bytes | None:
        """No file is written: whether it is out already only the command knows."""
        return data

    def put_back(self, data: bytes) -> bytes:
        """No file is written."""
        return data


def make(spec: object) -> CommandSwitch:
    """From the service file's `traffic`."""
    if not isinstance(spec, TrafficSpec) or spec.command is None:
        raise ValueError("traffic: {command: ...} is not given")
    return CommandSwitch(spec.command)
