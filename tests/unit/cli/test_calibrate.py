"""`changectl calibrate` refuses what makes no sense before any host is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run


def test_two_ways_to_say_how_much_are_one_too_many(run: Run, project: Path) -> None:
    ended = run("calibrate", "chat", "--pairs", "3", "--time", "10m")
    assert (ended.code, "give one of them" in ended.err) == (2, True)


@pytest.mark.parametrize("words", [("--pairs", "1"), ("--pairs", "9"), ("--time", "soon"), ("--reason", "two\nlines")])
def test_what_cannot_be_meant_is_said(words: tuple[str, str], run: Run, project: Path) -> None:
    assert run("calibrate", "chat", *words).code == 2


def test_an_unknown_service_is_named(run: Run, project: Path) -> None:
    ended = run("calibrate", "chta")
    assert ended.code == 2
    assert "chta" in ended.err
