from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Ended, Run

from changectl.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def _run(*arguments: str) -> Ended:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return _run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """A fresh example project that is the working directory."""
    monkeypatch.chdir(tmp_path)
    assert run("init").code == 0
    return tmp_path
