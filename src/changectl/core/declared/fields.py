"""The field types of plans and services: text as written in, checked values out.

Strings of a service may be Jinja2 templates (`{{ ansible_host }}`). What a template gives is only known per host, so a
field's syntax is checked when it is rendered; until then a template passes as it is.
"""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, PlainValidator, ValidationInfo, WithJsonSchema

from changectl.core.declared.grammar import Fault, fault, faults, nearest
from changectl.core.settings import ABSENT, Value
from changectl.core.units import LevelLoad, parse_duration, parse_level

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_UNIT = re.compile(r"(?:[A-Za-z0-9:_.\\-]+)(?:@[A-Za-z0-9:_.\\-]*)?\.([a-z]+)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
RESERVED_LEVEL = "warmup"  # how the load generator calls the requests before the counted ones
_TEMPLATE = re.compile(r"\{\{|\{%|\{#")


def is_template(text: object) -> bool:
    """Whether a text holds a Jinja2 expression, so that its value is known only per host."""
    return isinstance(text, str) and _TEMPLATE.search(text) is not None


def text_of(value: Any) -> str:
    """The scalar as text. Raises the complaint that one text belongs here."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise fault("one text belongs here", "write one value, without list or mapping")
    return str(value)


def _version(value: Any) -> int:
    if text_of(value) != "1":
        raise fault(f"version {value} is not known to this changectl", "write `version: 1`")
    return 1


def is_name(text: str) -> bool:
    """Whether a text can name a service or a level."""
    return _NAME.fullmatch(text) is not None


def _name(value: Any) -> str:
    text = text_of(value)
    if not is_name(text):
        raise fault(f"`{text}` cannot be a name", "use lower-case letters, digits, `-`, `_` and `.`, like `chat-eu`")
    return text


def _line(value: Any) -> str:
    text = text_of(value).strip()
    if not text:
        raise fault("the text is empty", "say it in one line")
    if _CONTROL.search(text):
        raise fault("the text holds a line break or control character", "write it in one line")
    return text


def _duration(value: Any) -> float:
    if isinstance(value, float):  # already seconds: a model built by code
        return value
    return parse_duration(text_of(value))


def _setting_value(value: Any) -> Value:
    if value is None:
        return None
    text = text_of(value)
    if _CONTROL.search(text):
        raise fault("a value cannot hold a line break or control character", "write it in one line")
    return None if text == ABSENT else text


def _unit(value: Any) -> str:
    text = text_of(value)
    if is_template(text):
        return text
    match = _UNIT.fullmatch(text)
    if match is None:
        stem = text.removesuffix(".service")
        hint = f"write `{stem}.service`" if re.fullmatch(r"[A-Za-z0-9:_.@-]+", stem) else "write it like `vllm.service`"
        raise fault(f"`{text}` is not the name of a systemd unit", hint)
    if match.group(1) != "service":
        raise fault(f"`{text}` is not a service unit", "name the unit that runs the engine, like `vllm.service`")
    if text.endswith("@.service"):
        raise fault(
            f"`{text}` is a template unit", f"name one instance of it, like `{text.removesuffix('.service')}1.service`"
        )
    return text


def _host_path(value: Any) -> str:
    text = _line(value)
    if is_template(text):
        return text
    if ".." in text.split("/"):
        raise fault(f"`{text}` leaves its folder", "write the path without `..`")
    return text


def _absolute_path(value: Any) -> str:
    text = _host_path(value)
    if not is_template(text) and not text.startswith("/"):
        raise fault(f"`{text}` is not an absolute path on the host", f"write it from the root, like `/srv/{text}`")
    return text


def _project_path(value: Any) -> str:
    text = _line(value)
    if text.startswith("~"):
        raise fault(f"`{text}` is not a path", "write it relative to the project file's folder")
    return text


def _endpoint(value: Any) -> str:
    text = _line(value)
    if is_template(text):
        return text
    hint = "write it like `http://10.0.0.5:8000`"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", text):
        raise fault(f"`{text}` is not the address of an instance", hint)
    if parts.username or parts.password:
        raise fault("an address must not hold a user or password", "write the token under `auth`, as a vault variable")
    if parts.query or parts.fragment:
        raise fault("an address has no query", hint)
    return text.rstrip("/")


def _port(value: Any) -> int | str:
    text = text_of(value)
    if is_template(text):
        return text
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 65535):
        raise fault(f"`{text}` is not a port", "write a number from 1 to 65535")
    return int(text)


def _level(value: Any) -> LevelLoad:
    if isinstance(value, LevelLoad):
        return value
    return parse_level(text_of(value))


def some_levels(levels: dict[str, LevelLoad]) -> dict[str, LevelLoad]:
    """The levels, if there are any."""
    if not levels:
        raise fault("no level is named here", "write for example `levels: {normal: 8 streams}`")
    if RESERVED_LEVEL in levels:
        message = f"`{RESERVED_LEVEL}` names the requests that nobody judges"
        raise faults([Fault(message, "call the level something else", (RESERVED_LEVEL,), key=True)])
    return levels


def _lease(value: Any) -> float:
    seconds = _duration(value)
    if not 2 <= seconds <= 86_400:
        raise fault(f"a lease of `{value}`", "write between 2s (nothing may hiccup) and 1d (a long wait), like `5m`")
    return seconds


def _never(_value: Any, info: ValidationInfo) -> None:
    hint = f"leave the key out: `{info.field_name}` belongs into the service file, and holds for all its plans"
    raise fault(f"`{info.field_name}` is not supported in a plan", hint)


def one_key(value: Any, known: tuple[str, ...], what: str, example: str) -> tuple[str, Any]:
    """The only key of a mapping and what it holds. Raises complaints naming what to write."""
    if isinstance(value, str):
        raise fault(f"`{value}` needs its settings", f"write for example `{example}`")
    if not isinstance(value, dict) or len(value) != 1:
        keys = ", ".join(f"`{key}`" for key in value) if isinstance(value, dict) and value else "none"
        raise fault(f"exactly one {what} belongs here, found {keys}", f"write for example `{example}`")
    (key, settings) = next(iter(value.items()))
    if key not in known:
        raise faults([Fault(f"unknown {what} `{key}`", nearest(key, known), (key,), key=True)])
    return key, settings


def _text_schema(description: str, *examples: str, **more: Any) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": ["string", "number"], "description": description, "examples": list(examples), **more}
    )


Version = Annotated[int, BeforeValidator(_version), WithJsonSchema({"enum": [1, "1"]})]
Name = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})]
Line = Annotated[str, BeforeValidator(_line), WithJsonSchema({"type": "string", "minLength": 1})]
Duration = Annotated[float, BeforeValidator(_duration), _text_schema("a duration", "800ms", "45m")]
Lease = Annotated[float, BeforeValidator(_lease), _text_schema("a duration of 2 s to a day", "5m")]
SettingValue = Annotated[
    Value, PlainValidator(_setting_value), _text_schema("text as it stands in the file, or absent")
]
Unit = Annotated[str, BeforeValidator(_unit), _text_schema("a systemd service unit", "vllm.service")]
HostPath = Annotated[str, BeforeValidator(_host_path), _text_schema("a path on the host", "/etc/vllm/chat.yaml")]
AbsolutePath = Annotated[
    str, BeforeValidator(_absolute_path), _text_schema("an absolute path on the host", "/srv/models/chat")
]
ProjectPath = Annotated[
    str, BeforeValidator(_project_path), _text_schema("a path relative to the project file's folder")
]
Endpoint = Annotated[str, BeforeValidator(_endpoint), _text_schema("base URL of one instance", "http://10.0.0.5:8000")]
Port = Annotated[int | str, PlainValidator(_port), _text_schema("a port", "8080")]
Level = Annotated[LevelLoad, PlainValidator(_level), _text_schema("a load level, closed or open", "8 streams", "6 rps")]
NotYet = Annotated[None, PlainValidator(_never), WithJsonSchema({"not": {}, "description": "not supported in a plan"})]
