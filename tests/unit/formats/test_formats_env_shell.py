"""A value in an environment file means the same to a shell that reads the file as it does to systemd."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key

FILE = Carrier(format="env", file="/etc/default/chat")
ARGS = Carrier(format="env", file="/etc/default/chat", at="A", then="flags")
BEFORE = ["A=1\n", "A='1'\n", 'A="1"\n', "B=2\n", "A='x'\"y\"\n"]
SIGNS = "aZ09_./:,+@%=- \t'\"\\$`!|&;<>()[]{}*?~#^é模"

texts = st.lists(st.sampled_from([*SIGNS, "$(id)", "`id`", "${A}", "\\\\", "~/x"]), max_size=10).map("".join)


def by_shell(folder: Path, contents: list[bytes]) -> list[bytes]:
    """What a POSIX shell finds in A after each of the files; one shell for all."""
    script = []
    for number, content in enumerate(contents):
        (folder / f"env{number}").write_bytes(content)
        script.append(f"unset A; . '{folder}/env{number}'; printf '%s\\0' \"$A\"")
    done = subprocess.run(
        ["/bin/sh", "-c", "\n".join(script)], capture_output=True, check=True, cwd=folder, env={"HOME": "/home/kim"}
    )
    assert done.stderr == b""
    return done.stdout.split(b"\0")[:-1]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.tuples(st.sampled_from(BEFORE), texts), min_size=1, max_size=20))
def test_a_shell_reads_every_written_value_as_it_is(values: list[tuple[str, str]], tmp_path: Path) -> None:
    written, expected = [], []
    for before, value in values:
        try:
            written.append(formats.edit(before.encode(), FILE, Key(("A",)), value))
        except EditRefused:
            continue
        expected.append(value.encode())

    assert by_shell(tmp_path, written) == expected


@pytest.mark.parametrize("value", ["a|id>z", "$(id)", "`id`", "a;b", "it's $5", "\\", "#", "a b", "~", "", "*", "!x"])
def test_hard_values_are_written_and_not_refused(value: str, tmp_path: Path) -> None:
    written = [formats.edit(before.encode(), FILE, Key(("A",)), value) for before in BEFORE]

    assert by_shell(tmp_path, written) == [value.encode()] * len(BEFORE)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.tuples(st.sampled_from(["'", '"', ""]), texts), min_size=1, max_size=20))
def test_a_shell_reads_options_inside_a_variable_as_text(values: list[tuple[str, str]], tmp_path: Path) -> None:
    written, expected = [], []
    for quote, value in values:
        try:
            edited = formats.edit(f"A={quote}--x=1{quote}\n".encode(), ARGS, Key(("--x",)), value)
        except EditRefused:
            continue
        written.append(edited)
        expected.append(formats.settings(edited, FILE)["A"][-1].encode())  # as systemd reads it

    assert by_shell(tmp_path, written) == expected


def test_an_option_that_needs_the_quotes_its_variable_stands_in_is_refused() -> None:
    with pytest.raises(EditRefused, match="the quotes that the whole variable stands in"):
        formats.edit(b'A="--x=1"\n', ARGS, Key(("--x",)), "#")
