"""Unit files: what systemd makes of their lines, and which file of several provides a directive."""

from __future__ import annotations

import pytest

from changectl.core.errors import EditRefused, InputError
from changectl.formats import (
    effective_file,
    environment_files,
    load,
    names,
    unit_environment,
    unit_lines,
)

FRAGMENT = b"""[Unit]
Description=a ; b
[Service]
# one
Type = simple
ExecStart=/bin/a --x \\
# inside
; inside too
   --y
Environment=A=1 "B=x y"
EnvironmentFile=-/etc/default/a
EnvironmentFile=/etc/default/b
"""
RESET = b"[Service]\nExecStart=\nExecStart=/bin/b\nEnvironment=A=2\n"


def test_assignments_have_section_value_and_line() -> None:
    found = [(one.section, one.key, one.value, one.line) for one in unit_lines(FRAGMENT)]

    assert found == [
        ("Unit", "Description", "a ; b", 2),
        ("Service", "Type", "simple", 5),
        ("Service", "ExecStart", "/bin/a --x     --y", 6),
        ("Service", "Environment", 'A=1 "B=x y"', 10),
        ("Service", "EnvironmentFile", "-/etc/default/a", 11),
        ("Service", "EnvironmentFile", "/etc/default/b", 12),
    ]


def test_spans_cover_the_value_as_written() -> None:
    text = FRAGMENT.decode()
    command = next(one for one in unit_lines(FRAGMENT) if one.key == "ExecStart")

    assert text[command.value_start : command.value_end].startswith("/bin/a --x \\\n# inside")
    assert text[command.value_start : command.value_end].endswith("--y")
    assert text[command.end :].startswith("Environment=")


def test_two_backslashes_at_the_end_continue_nothing() -> None:
    assert [one.key for one in unit_lines(b"[Service]\nA=x\\\\\nB=1\n")] == ["A", "B"]


def test_an_assignment_before_the_first_section_has_none() -> None:
    assert unit_lines(b"A=1\n")[0].section == ""


def test_a_drop_in_that_resets_provides_the_command() -> None:
    assert effective_file([("a.service", FRAGMENT), ("b.conf", RESET)], "ExecStart") == "b.conf"


def test_a_drop_in_that_only_resets_leaves_no_command() -> None:
    assert effective_file([("a.service", FRAGMENT), ("b.conf", b"[Service]\nExecStart=\n")], "ExecStart") is None


def test_a_drop_in_without_a_reset_is_refused() -> None:
    files = [("a.service", FRAGMENT), ("b.conf", b"[Service]\nExecStart=/bin/b\n")]

    with pytest.raises(EditRefused, match=r"a\.service line 6, b\.conf line 2"):
        effective_file(files, "ExecStart")


def test_a_later_file_replaces_a_plain_directive() -> None:
    files = [("a", b"[Service]\nType=simple\n"), ("b", b"[Service]\nType=notify\n"), ("c", b"[Unit]\nType=x\n")]

    assert effective_file(files, "Type") == "b"


def test_environment_files_come_in_reading_order_with_their_place() -> None:
    found = environment_files([("a.service", FRAGMENT)])

    assert [(one.path, one.optional, one.line) for one in found] == [
        ("/etc/default/a", True, 11),
        ("/etc/default/b", False, 12),
    ]


def test_environment_files_are_reset_by_an_empty_one() -> None:
    assert environment_files([("a", FRAGMENT), ("b", b"[Service]\nEnvironmentFile=\n")]) == ()


def test_a_later_environment_wins_and_names_its_place() -> None:
    found = unit_environment([("a.service", FRAGMENT), ("b.conf", RESET)])

    assert {name: (one.value, one.file, one.line) for name, one in found.items()} == {
        "A": ("2", "b.conf", 4),
        "B": ("x y", "a.service", 10),
    }


def test_an_empty_environment_resets_all_before_it() -> None:
    found = unit_environment([("a", FRAGMENT), ("b", b"[Service]\nEnvironment=\nEnvironment=C=3\n")])

    assert list(found) == ["C"]


def test_formats_are_listed_and_an_unknown_one_names_them() -> None:
    assert names() == ("env", "flags", "json", "pattern", "yaml")
    with pytest.raises(InputError, match="unknown format 'toml'; known: env, flags, json, pattern, yaml"):
        load("toml")
