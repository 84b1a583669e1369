"""What starts the process: read the manager's description and find the process through it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import command, systemd
from .failure import Failure


def read(spec: Any) -> Tuple[str, Dict[str, Any]]:
    """Check a manager's description; returns its name and its settings.

    Raises:
        Failure: `bad_arguments` saying what is missing.
    """
    if not isinstance(spec, dict) or len(spec) != 1:
        raise Failure("bad_arguments", 'manager must be {"systemd": {...}} or {"command": {...}}')
    ((name, settings),) = spec.items()
    if name == "systemd" and isinstance(settings, dict):
        systemd.check_unit(settings.get("unit"))
    elif name == "command" and isinstance(settings, dict):
        command.check(settings)
    else:
        raise Failure("bad_arguments", f"manager {name!r} is not known here; known: systemd, command")
    return name, settings


def main_pid(spec: Any) -> Optional[int]:
    """The service's main process, or None when it does not run."""
    name, settings = read(spec)
    if name == "systemd":
        return systemd.main_pid(systemd.show(settings))
    return command.find(settings)


def describe(spec: Any) -> Dict[str, Any]:
    """What the manager itself says about the service, for inspect."""
    name, settings = read(spec)
    return systemd.describe(settings) if name == "systemd" else {}


def configuration_files(described: Dict[str, Any]) -> List[str]:
    """The manager's own files that belong to the service's configuration."""
    return [*described.get("files", []), *(item["path"] for item in described.get("env_files", []))]
