"""Vault values and vault files of an inventory, opened by Ansible's own tool: plain text travels through pipes only."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changectl.core.errors import InputError
from changectl.core.redaction.variables import hidden_values

TIMEOUT = 60.0  # seconds; a password script may ask a key store
MARK = "__ansible_vault"  # how ansible-inventory --list prints an encrypted value
HEADER = b"$ANSIBLE_VAULT"
VARIABLE_FOLDERS = ("group_vars", "host_vars")


def absolute(vault_id: str) -> str:
    """A vault identity whose file is named in full: Ansible's tools run in other folders than ours."""
    label, mark, source = vault_id.rpartition("@")
    path = Path(source).expanduser()
    return f"{label}{mark}{path.resolve()}" if path.is_file() else vault_id


def forget(values: Iterable[str]) -> None:
    """The default listener: nobody wants to know the plain texts."""


def encrypted_files(source: Path) -> list[Path]:
    """The files of an inventory, and of the variable folders beside it, that are encrypted as a whole."""
    if source.is_dir():
        found = set(source.rglob("*"))
    else:
        found = {source, *(path for name in VARIABLE_FOLDERS for path in (source.parent / name).rglob("*"))}
    return sorted(path for path in found if path.is_file() and _is_encrypted(path))


def _is_encrypted(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False  # Ansible could not read it either


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

    def learn_files(self, files: Iterable[Path]) -> None:
        """Tell what is hidden in encrypted files; one that no given identity opens is not in use."""
        for file in files:
            cipher_text = file.read_text(encoding="ascii", errors="replace")
            if cipher_text in self._known:
                continue
            try:
                self._known[cipher_text] = self._ask(cipher_text)
            except InputError:
                self._known[cipher_text] = ""
            self.learn(_hidden(self._known[cipher_text]))

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


def _hidden(text: str) -> list[str]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader = YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = True
    try:
        data = reader.load(re.sub(r"(?<=\s)!(?:vault|unsafe)\b", "", text))
    except (YAMLError, ValueError, RecursionError):
        data = None
    if isinstance(data, dict | list):
        return hidden_values(data)
    # An inventory in INI's manner: every assignment.
    pairs = re.findall(r"([^\s=]+)\s*=\s*(?:\"([^\"\n]*)\"|'([^'\n]*)'|(\S+))", text)
    return hidden_values([{name: "".join(value)} for name, *value in pairs])
