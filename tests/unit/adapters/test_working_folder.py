"""What Ansible finds from the working folder, for jobs that run elsewhere; and who is told what a vault holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from changectl.adapters.environment import for_ansible
from changectl.adapters.vault import MARK, Vault, absolute

PYTHON = Path(sys.executable)


def test_a_vault_identity_names_its_file_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "word").write_text("x")
    monkeypatch.chdir(tmp_path)

    assert absolute("lab@word") == f"lab@{tmp_path}/word"
    assert absolute("word") == f"{tmp_path}/word"
    unchanged = ["prompt", "lab@prompt", "lab@missing"]
    assert [absolute(text) for text in unchanged] == unchanged


def test_the_working_folders_configuration_counts_for_jobs_that_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"ANSIBLE_VAULT_PASSWORD_FILE": "word"}

    assert "ANSIBLE_CONFIG" not in for_ansible(given, tmp_path, PYTHON)
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    found = for_ansible(given, tmp_path, PYTHON)

    assert found["ANSIBLE_CONFIG"] == str(tmp_path / "ansible.cfg")
    assert found["ANSIBLE_VAULT_PASSWORD_FILE"] == str(tmp_path / "word")


def test_a_configuration_in_a_folder_that_everybody_can_write_to_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ansible.cfg").write_text("[defaults]\n")
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)

    assert "ANSIBLE_CONFIG" not in for_ansible({}, tmp_path, PYTHON)


def test_who_keeps_secrets_is_told_what_a_vault_holds(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("opens\n")
    vault_id = f"lab@{tmp_path / 'word'}"
    words = [str(PYTHON.parent / "ansible-vault"), "encrypt", "--vault-id", vault_id, "--encrypt-vault-id", "lab", "-"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    cipher = subprocess.run(words, input="plain text", capture_output=True, text=True, env=environment, check=True)
    told: list[str] = []
    vault = Vault([vault_id], environment, told.extend)

    vault.open([{MARK: cipher.stdout}, {MARK: cipher.stdout}])

    assert told == ["plain text"]
