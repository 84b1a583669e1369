"""Secrets of an inventory: encrypted by the real ansible-vault, in group_vars as operators keep them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.lab.desk import Desk

VAULT_PASSWORD = "lab vault 9c41f7 opens"
VAULT_FILE = "vault-password"
VAULT = ("--vault-id", f"lab@{VAULT_FILE}")


def encrypt(desk: Desk, name: str, value: str) -> str:
    """Return `name: !vault ...` as YAML, encrypted under the identity `lab`; the value travels through a pipe."""
    (desk.folder / VAULT_FILE).write_text(f"{VAULT_PASSWORD}\n")
    tool = str(Path(sys.executable).parent / "ansible-vault")
    words = [tool, "encrypt_string", *VAULT, "--encrypt-vault-id", "lab", "--stdin-name", name]
    environment = {**os.environ, "HOME": str(desk.home)}
    done = subprocess.run(
        words, input=value, capture_output=True, text=True, cwd=desk.folder, env=environment, check=True
    )
    return done.stdout


def encrypted_variables(desk: Desk, secrets: Mapping[str, str], group: str = "gpu") -> None:
    """Write group_vars/GROUP.yml with each secret encrypted."""
    text = "".join(f"{encrypt(desk, name, value)}\n" for name, value in secrets.items())
    path = desk.folder / "group_vars" / f"{group}.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
