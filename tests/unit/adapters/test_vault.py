"""Encrypted values inside whatever an inventory holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from changectl.adapters.vault import MARK, Vault
from changectl.core.errors import InputError


@pytest.fixture(scope="module")
def password(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vault") / "password"
    path.write_text("open-sesame\n")
    return path


@pytest.fixture(scope="module")
def cipher(password: Path) -> str:
    tool = Path(sys.executable).parent / "ansible-vault"
    command = [str(tool), "encrypt", "--vault-password-file", str(password), "--output", "-", "-"]
    return subprocess.run(command, input="hidden value", capture_output=True, text=True, check=True).stdout


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}


def test_values_are_opened_at_any_depth_and_others_stay(password: Path, cipher: str, tmp_path: Path) -> None:
    opened = Vault([f"default@{password}"], environment(tmp_path)).open(
        {"a": 1, "deep": [{"key": {MARK: cipher}}, "plain"], "again": {MARK: cipher}}
    )
    assert opened == {"a": 1, "deep": [{"key": "hidden value"}, "plain"], "again": "hidden value"}


def test_each_cipher_text_is_opened_once(password: Path, cipher: str, tmp_path: Path) -> None:
    vault = Vault([f"default@{password}"], environment(tmp_path))
    vault.open({MARK: cipher})
    password.rename(password.with_name("moved"))
    try:
        assert vault.open({MARK: cipher}) == "hidden value"
    finally:
        password.with_name("moved").rename(password)


def test_without_encrypted_values_nobody_is_asked(tmp_path: Path) -> None:
    assert Vault(["prod@/no/such/file"], {}).open({"a": ["b"]}) == {"a": ["b"]}


@pytest.mark.parametrize("text", ["no vault at all", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"])
def test_what_cannot_be_opened_is_said_without_its_text(text: str, password: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--vault-id") as caught:
        Vault([f"default@{password}"], environment(tmp_path)).open({MARK: text})
    assert "6162" not in str(caught.value)
