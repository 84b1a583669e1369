"""How a service file says what takes an instance out of service: `traffic`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from changectl.core.declared.argv import Argv
from changectl.core.declared.fields import AbsolutePath, Line, one_key
from changectl.core.declared.grammar import Grammar, not_yet

NONE: Final[Literal["none"]] = "none"
_WAYS = ("nginx", "command")
OF_UPSTREAM = " (upstream "  # in the record, between a balancer's host and the name of the upstream that is held there
_EXAMPLE = 'traffic: {nginx: {host: lb1, file: /etc/nginx/conf.d/chat.conf, upstream: chat, member: "10.0.0.5:8000"}}'


class NginxTraffic(Grammar):
    """An nginx that spreads the requests over the members of one upstream."""

    host: Line = Field(description="the inventory host that nginx runs on", examples=["lb1"])
    file: AbsolutePath = Field(
        description="the file that holds the upstream block", examples=["/etc/nginx/conf.d/chat.conf"]
    )
    upstream: Line = Field(description="the upstream's name", examples=["chat"])
    member: Line = Field(
        description="the instance's address as its `server` line says it", examples=['"{{ ansible_host }}:8000"']
    )


class CommandTraffic(Grammar):
    """The operator's own commands; no shell runs them. Each may be run again for what is so already."""

    out: Argv = Field(description="takes the instance out of service and returns", examples=["/opt/lb out gpu1"])
    back: Argv = Field(alias="in", description="puts it back", examples=["/opt/lb in gpu1"])
    host: Line | None = Field(None, description="the inventory host they run on; default: the instance's own")


class TrafficSpec(Grammar):
    """Exactly one way of taking an instance out of service."""

    nginx: NginxTraffic | None = None
    command: CommandTraffic | None = None

    @property
    def name(self) -> str:
        """The family's member."""
        return "nginx" if self.nginx is not None else "command"

    @property
    def host(self) -> str | None:
        """The inventory host that switches; None: the instance's own."""
        way = self.nginx or self.command
        return way.host if way is not None else None


@dataclass(frozen=True, slots=True)
class Peer:
    """One member of an upstream.

    Attributes:
        address: as the balancer's configuration says it.
        down: whether it gets no requests, whoever said so.
        backup: whether it gets requests only where all others are gone.
    """

    address: str
    down: bool = False
    backup: bool = False


def _traffic(value: Any) -> TrafficSpec | Literal["none"]:
    if isinstance(value, TrafficSpec):
        return value
    if value == NONE:
        return NONE
    if value == "haproxy" or (isinstance(value, dict) and "haproxy" in value):
        hint = "write `traffic: {command: {out: ..., in: ...}}` with commands of your own, or `traffic: none`"
        raise not_yet("traffic control by `haproxy`", "none, nginx, command", hint)
    one_key(value, _WAYS, "way", _EXAMPLE)
    return TrafficSpec.model_validate(value)


def _plain(value: TrafficSpec | str) -> Any:
    return value if isinstance(value, str) else value.model_dump(mode="json", by_alias=True, exclude_none=True)


TrafficField = Annotated[
    TrafficSpec | Literal["none"],
    PlainValidator(_traffic),
    PlainSerializer(_plain),
    WithJsonSchema({
        "anyOf": [
            {"enum": [NONE]},
            {"type": "object", "properties": {"nginx": NginxTraffic.model_json_schema()}, "required": ["nginx"],
             "additionalProperties": False},
            {"type": "object", "properties": {"command": CommandTraffic.model_json_schema(by_alias=True)},
             "required": ["command"], "additionalProperties": False},
        ]
    }),
]  # fmt: skip
