"""What stands on a host is accepted by a person, who has to say why: nothing else explains it later."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run


@pytest.mark.parametrize("reason", [[], ["--reason", "  "]])
def test_accepting_what_stands_there_needs_a_reason(project: Path, run: Run, reason: list[str]) -> None:
    ended = run("revert", "20261130-08", "--accept-present", *reason)

    assert (ended.code, ended.out) == (2, "")
    assert "--reason TEXT" in ended.err
    assert not (project / ".changectl").exists()
