"""Options that several commands share, gathered into one argument each; Ansible's names where it has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

FORMAT = 1  # of the JSON documents that commands print; docs/reference/json.md


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Which hosts, and how Ansible reaches them."""

    inventory: Path | None
    limit: str | None
    ask_become_pass: bool
    vault_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How the result is shown."""

    json: bool
    debug: bool


def _there(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:  # noqa: ARG001 - click's signature
    """An inventory that is not there is one mistake, not one for everything that stands in it. Raises InputError."""
    from changectl.core.errors import InputError, Problem

    if value is not None and not ctx.resilient_parsing and not value.exists():
        hint = "-i names an Ansible inventory, or the folder that holds it"
        raise InputError(Problem("there is no such inventory", str(value), hint=hint))
    return value


_INVENTORY = click.option(
    "-i",
    "--inventory",
    type=click.Path(path_type=Path),
    callback=_there,
    help="Ansible inventory; services/ and workloads/ lie in its folder. Default: the project file's.",
)
_LIMIT = click.option("--limit", metavar="NAMES", help="Only these hosts or groups of the inventory, as gpu1,gpu2.")
_BECOME = click.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password of the hosts' user.")
_VAULT = click.option(
    "--vault-id",
    "vault_ids",
    multiple=True,
    metavar="ID",
    help="Vault identity, as Ansible's LABEL@FILE; may be repeated.",
)
_JSON = click.option("--json", "json", is_flag=True, help="Print one JSON document; the exit code is the same.")
_DEBUG = click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")


def host_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`-i --limit -K --vault-id`, for commands that touch hosts; arrive together as `hosts`."""

    @functools.wraps(function)
    def gathered(
        *args: Any,
        inventory: Path | None,
        limit: str | None,
        ask_become_pass: bool,
        vault_ids: tuple[str, ...],
        **others: Any,
    ) -> Any:
        return function(*args, hosts=HostOptions(inventory, limit, ask_become_pass, vault_ids), **others)

    return _INVENTORY(_LIMIT(_BECOME(_VAULT(gathered))))


def inventory_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`-i --vault-id`, for commands that read the inventory but touch no host; arrive together as `hosts`."""

    @functools.wraps(function)
    def gathered(*args: Any, inventory: Path | None, vault_ids: tuple[str, ...], **others: Any) -> Any:
        hosts = HostOptions(inventory, limit=None, ask_become_pass=False, vault_ids=vault_ids)
        return function(*args, hosts=hosts, **others)

    return _INVENTORY(_VAULT(gathered))


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001 - click's signature
    """For options like `--time 45m`: seconds; None: not given."""
    from changectl.core.units import parse_duration

    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float:
    return duration(ctx, param, value) or 0.0


def wait_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--wait DURATION`, for commands that take a lock or lease; arrives as `wait`, in seconds."""
    text = "How long to wait while somebody else changes the service or a host, like 10m. Default: not at all."
    return click.option("--wait", metavar="DURATION", callback=_seconds, help=text)(function)


def example(*lines: str) -> str:
    """The end of a command's help: lines as an operator would type them."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--json --debug`, for every command; arrive together as `output`."""

    @functools.wraps(function)
    def gathered(*args: Any, json: bool, debug: bool, **others: Any) -> Any:
        return function(*args, output=OutputOptions(json, debug), **others)

    return _JSON(_DEBUG(gathered))
