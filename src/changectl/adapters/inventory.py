"""The operator's own Ansible inventory, read by Ansible itself: every plugin, group and vault works as usual."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from changectl.adapters.ansible_defaults import defaults
from changectl.adapters.environment import for_ansible
from changectl.adapters.templated import filled
from changectl.adapters.vault import Vault, encrypted_files, forget
from changectl.core.errors import InputError, Problem
from changectl.core.ports import HostAddress

TIMEOUT = 120.0  # seconds; dynamic inventories ask clouds


@dataclass(frozen=True)
class AnsibleInventory:
    """`ansible-inventory --list`, asked once and kept for the run."""

    source: Path
    playbooks: Path
    limit: str | None = None
    vault_ids: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    learn: Callable[[Iterable[str]], None] = forget  # is told what encrypted variables hold

    def hosts(self, pattern: str) -> Sequence[HostAddress]:
        """The hosts of a group or a single host, in inventory order, `--limit` applied; empty when nothing matches.

        Raises:
            InputError: the inventory cannot be read.
        """
        self._vault.learn_files(self._encrypted)
        allowed = None if self.limit is None else set(self._names(self.limit))
        return [
            HostAddress(name, self._variables(name))
            for name in self._names(pattern)
            if allowed is None or name in allowed
        ]

    def host(self, name: str) -> HostAddress | None:
        """One host by its name, whatever `--limit` says: for one that is not changed. None: there is none.

        Raises:
            InputError: the inventory cannot be read.
        """
        self._vault.learn_files(self._encrypted)
        return HostAddress(name, self._variables(name)) if self._group(name) == [name] else None

    def known(self) -> set[str]:
        """All names of groups and hosts, for messages that list what exists."""
        # A host without variables stands in its groups alone.
        in_groups = {host for name in self.groups() for host in self._data[name].get("hosts", [])}
        return {*self.groups(), *self._hostvars, *in_groups}

    def groups(self) -> set[str]:
        """All names of groups."""
        return set(self._data) - {"_meta"}

    @cached_property
    def _data(self) -> dict[str, Any]:
        command = [str(Path(sys.executable).parent / "ansible-inventory"), "-i", str(self.source), "--list"]
        for vault in self.vault_ids:
            command += ["--vault-id", vault]
        environment = for_ansible(self.environ, self.playbooks, Path(sys.executable))
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._unreadable(str(error)) from error
        if done.returncode != 0:
            raise self._unreadable(_last_error(done.stderr))
        data: dict[str, Any] = json.loads(done.stdout)
        return data

    @cached_property
    def _vault(self) -> Vault:
        environment = for_ansible(self.environ, self.playbooks, Path(sys.executable))
        return Vault(self.vault_ids, environment, self.learn)

    @cached_property
    def _encrypted(self) -> list[Path]:
        """Ansible prints what stands in a file that is encrypted as a whole as if it were plain."""
        return encrypted_files(self.source)

    @property
    def _hostvars(self) -> dict[str, dict[str, Any]]:
        hostvars: dict[str, dict[str, Any]] = self._data.get("_meta", {}).get("hostvars", {})
        return hostvars

    def _names(self, pattern: str) -> list[str]:
        """Names of a host, a group with its children, or a comma- or colon-separated list of these."""
        found: dict[str, None] = {}
        for part in pattern.replace(":", ",").split(","):
            found.update(dict.fromkeys(self._group(part.strip())))
        return list(found)

    def _group(self, name: str) -> list[str]:
        group = self._data.get(name)
        if isinstance(group, dict) and name != "_meta":
            names = list(group.get("hosts", []))
            for child in group.get("children", []):
                names += self._group(child)
            return names
        in_any_group = any(name in group.get("hosts", []) for key, group in self._data.items() if key != "_meta")
        return [name] if in_any_group or name in self._hostvars else []

    def _variables(self, name: str) -> dict[str, Any]:
        own: dict[str, Any] = self._vault.open(self._hostvars.get(name, {}))
        variables: dict[str, Any] = {**defaults(self.environ, Path.cwd()), **own}
        variables.setdefault("inventory_hostname", name)
        variables.setdefault("ansible_host", name)
        return filled(variables, name, str(self.source))

    def _unreadable(self, why: str) -> InputError:
        return InputError(
            Problem(
                f"Ansible cannot read this inventory: {why}",
                file=str(self.source),
                hint="check it with: ansible-inventory -i PATH --list",
            )
        )


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or line.startswith("[")]
    return (errors or lines or ["no message"])[0]
