"""Inline vault values of an inventory, opened by Ansible's own tool: plain text travels through pipes only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changectl.core.errors import InputError

TIMEOUT = 60.0  # seconds; a password script may ask a key store
MARK = "__ansible_vault"  # how ansible-inventory --list prints an encrypted value


def absolute(vault_id: str) -> str:
    """A vault identity whose file is named in full: Ansible's tools run in other folders than ours."""
    label, mark, source = vault_id.rpartition("@")
    path = Path(source).expanduser()
    return f"{label}{mark}{path.resolve()}" if path.is_file() else vault_id


def forget(values: Iterable[str]) -> None:
    """The default listener: nobody wants to know the plain texts."""


@dataclass
class Vault:
    """Decrypts values; each distinct cipher text once.

    `learn` is told every plain text, so that none of them gets into a record or an output.
    """

    vault_ids: Sequence[str]
    environment: Mapping[str, str]
    learn: Callable[[Iterable[str]], None] = forget
    _known: dict[str, str] = field(default_factory=dict)

    def open(self, value: Any) -> Any:
        """`value` with every encrypted part inside it replaced by its plain text.

        Raises:
            InputError: no given vault identity opens it.
        """
        if isinstance(value, dict):
            if set(value) == {MARK}:
                return self._decrypt(str(value[MARK]))
            return {key: self.open(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.open(part) for part in value]
        return value

    def _decrypt(self, cipher_text: str) -> str:
        if cipher_text not in self._known:
            self._known[cipher_text] = self._ask(cipher_text)
            self.learn([self._known[cipher_text]])
        return self._known[cipher_text]

    def _ask(self, cipher_text: str) -> str:
        command = [str(Path(sys.executable).parent / "ansible-vault"), "decrypt", "-"]
        for vault in self.vault_ids:
            command += ["--vault-id", vault]
        done = subprocess.run(
            command,
            input=cipher_text.encode(),
            capture_output=True,
            timeout=TIMEOUT,
            env=dict(self.environment),
            check=False,
        )
        if done.returncode != 0:
            raise InputError("an encrypted inventory value cannot be opened: give its vault with --vault-id LABEL@FILE")
        return done.stdout.decode()
