"""Templates in the variables that say how to reach a host: Ansible fills them when it connects, so do we."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from changectl.core.declared.fields import is_template
from changectl.core.declared.source import Source
from changectl.core.declared.templates import Renderer
from changectl.core.errors import InputError, Problem

# What a connection for reading needs; any other `ansible_*` template that cannot be filled is left as it is.
_NEEDED = frozenset(
    {"ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port", "ansible_user", "ansible_ssh_user"}
    | {"ansible_connection", "ansible_password", "ansible_ssh_pass", "ansible_ssh_private_key_file"}
    | {"ansible_private_key_file", "ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"}
    | {"ansible_become", "ansible_become_user", "ansible_become_password", "ansible_become_pass"}
    | {"ansible_python_interpreter"}
)


def filled(variables: Mapping[str, Any], host: str, inventory: str) -> dict[str, Any]:
    """The variables with the templates in `ansible_*` filled from the others.

    Raises:
        InputError: a template that connecting needs cannot be filled; what it gives is not shown.
    """
    known = {"ansible_playbook_python": sys.executable, **variables}
    found, problems = dict(variables), list[Problem]()
    for name, value in variables.items():
        if not (name.startswith("ansible_") and is_template(value)):
            continue
        renderer = Renderer(Source(inventory, {}), known, host)
        text = renderer.fill(value, (name,))
        if not renderer.problems:
            found[name] = text
        elif name in _NEEDED:
            problems += renderer.problems
    if problems:
        raise InputError(problems)
    return found
