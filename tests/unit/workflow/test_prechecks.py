"""What is asked of a program that does not run: the unit says how it would be started."""

from __future__ import annotations

import pytest

from changectl.workflow.prechecks import unit_command

SHOWN = "{ path=/opt/llama-server ; argv[]=/opt/llama-server --parallel 4 ; ignore_errors=no ; pid=0 }"


@pytest.mark.parametrize(
    ("exec_start", "words"),
    [
        (SHOWN, ["/opt/llama-server", "--parallel", "4"]),
        (["{ path=/bin/prepare ; argv[]=/bin/prepare ; }", SHOWN], ["/opt/llama-server", "--parallel", "4"]),
        ("", []),
        ([], []),
        (None, []),
    ],
)
def test_a_unit_shows_how_it_starts_its_program(exec_start: str | list[str] | None, words: list[str]) -> None:
    assert unit_command(exec_start) == words
