"""Fills the templates of a service for one host. What a template gives may be secret: no message shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from changectl.core.declared.argv import split_command
from changectl.core.declared.service import Service, from_source
from changectl.core.declared.source import Source
from changectl.core.declared.templates import Renderer
from changectl.core.errors import InputError

_COMMANDS = ("start", "stop")


def render(service: Service, variables: Mapping[str, Any], *, host: str = "") -> Service:
    """The service as it is on one host.

    Args:
        service: as `service.load` read it.
        variables: the host's variables; values may be secret.
        host: its name for messages.

    Raises:
        InputError: an undefined variable (named), or a template whose result does not fit its place (not shown).
    """
    return render_source(service.source, variables, host=host)


def render_source(source: Source, variables: Mapping[str, Any], *, host: str = "") -> Service:
    """As `render`, from a file's data."""
    renderer = Renderer(source, variables, host)
    data = renderer.fill(_with_split_commands(source.data), ())
    if renderer.problems:
        raise InputError(renderer.problems)
    filled = Source(source.file, data, source.values, source.keys, source.problems)
    try:
        return from_source(filled, {"rendered": True})
    except InputError as error:
        raise InputError([renderer.without_values(problem) for problem in error.problems]) from None


def _with_split_commands(data: Any) -> Any:
    """Command lines become words before their templates are filled, so that a variable's spaces never split one."""
    manager = data.get("manager") if isinstance(data, dict) else None
    if not isinstance(manager, dict) or not isinstance(command := manager.get("command"), dict):
        return data
    words = {key: split_command(value) for key in _COMMANDS if isinstance(value := command.get(key), str)}
    return {**data, "manager": {**manager, "command": {**command, **words}}}
