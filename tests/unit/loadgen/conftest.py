from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result

from changectl.adapters.loadgen import build_zip
from changectl.core.measuring.measurement import parse_records


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loadgen") / "generator.pyz"
    path.write_bytes(build_zip())
    return path


@pytest.fixture(scope="session", name="module_generate")
def generate_for_many(program: Path) -> Callable[..., Result]:
    """As `generate`, for one run that several tests look at."""
    return _runner(program)


@pytest.fixture
def generate(program: Path) -> Callable[..., Result]:
    """Run the packed program in isolated mode: nothing but the zip and the standard library can be imported."""
    return _runner(program)


def _runner(program: Path) -> Callable[..., Result]:
    def run(job: dict[str, Any] | str, *, python: str = sys.executable) -> Result:
        text = job if isinstance(job, str) else json.dumps(job)
        done = subprocess.run(
            [python, "-I", "-S", str(program)], input=text, capture_output=True, text=True, timeout=30, check=False
        )
        notes = [json.loads(line) for line in done.stderr.splitlines()]
        return Result(done.returncode, tuple(parse_records(done.stdout)), notes, done.stdout)

    return run
