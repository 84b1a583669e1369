from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.reports._safe import safe
from changectl.reports._tables import cells, fold, widths
from changectl.reports.printer import Printer

EVIL = "\x1b[31mred\x07 \u202eright \u200bhidden [bold]markup[/bold] :smile:\r\n"


def written(*, terminal: bool) -> tuple[Printer, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Printer(out, err, terminal=terminal, width=60), out, err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢字 €", "plain ä 漢字 €"),
        ("a\nb", "a\nb"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b1m", "\\x9b1m"),
        ("a\rb\tc", "a\\rb\\tc"),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_could_steer_or_hide_is_escaped(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_cell_has_no_line_breaks() -> None:
    assert safe("a\nb", lines=False) == "a\\nb"


def test_what_the_stream_cannot_carry_is_escaped() -> None:
    assert safe("ä€", encoding="ascii") == "\\xe4\\u20ac"


@given(st.text())
def test_no_text_brings_a_control_character_to_the_terminal(text: str) -> None:
    assert not [character for character in safe(text) if ord(character) < 32 and character != "\n"]


@pytest.mark.parametrize("style", [None, "bold red"])
@pytest.mark.parametrize("terminal", [True, False])
def test_foreign_text_is_neither_markup_nor_escape_sequence(*, terminal: bool, style: str | None) -> None:
    printer, out, _ = written(terminal=terminal)

    printer.line(EVIL, style=style)

    assert "\\x1b[31mred\\x07 \\u202eright \\u200bhidden [bold]markup[/bold] :smile:\\r\n" in out.getvalue()


def test_a_table_elsewhere_is_lines_of_tab_separated_cells() -> None:
    printer, out, _ = written(terminal=False)

    printer.table(["run", "service"], [["r1", "chat"], ["r2", "a\tb"]])

    assert out.getvalue() == "run\tservice\nr1\tchat\nr2\ta\\tb\n"


def test_a_table_on_a_terminal_is_drawn_with_foreign_text_escaped() -> None:
    printer, out, _ = written(terminal=True)

    printer.table(["run", "[bold]service"], [["r1", "[red]chat"], ["r2", "\x1b[1m"]])

    assert "[bold]service" in out.getvalue()
    assert "[red]chat" in out.getvalue()
    assert "\\x1b[1m" in out.getvalue()


def test_notes_are_not_results() -> None:
    printer, out, err = written(terminal=False)

    printer.note("waiting")

    assert (out.getvalue(), err.getvalue()) == ("", "waiting\n")


def test_full_digests_are_not_broken() -> None:
    printer, out, _ = written(terminal=True)
    digest = "0123456789abcdef" * 8

    printer.line(digest, style="bold")

    assert digest in out.getvalue()


def test_the_name_of_a_row_is_never_broken_so_that_it_can_be_copied() -> None:
    name = "20261130-081502-chat-k3f7/1"
    printer, out, _ = written(terminal=True)
    printer.table(["run", "why"], [[name, "a long reason that has to be told in more than one line " * 2]])

    assert any(line.startswith(name) for line in out.getvalue().splitlines())
    assert max(map(len, out.getvalue().splitlines())) <= 60


def test_a_table_that_is_too_wide_is_told_row_by_row() -> None:
    name = "20261130-081502-chat-k3f7/1"
    columns = ["run", "when", "service", "change", "why"]
    printer, out, _ = written(terminal=True)
    printer.table(columns, [[name, "2026-11-30 08:15", "", "max-num-seqs: 64 -> 128", "requests wait"]])

    assert out.getvalue().splitlines() == [
        name,
        "  when     2026-11-30 08:15",
        "  change   max-num-seqs: 64 -> 128",
        "  why      requests wait",
    ]


@given(
    st.lists(st.lists(st.text("ab /1", max_size=50), min_size=3, max_size=3), max_size=4),
    st.integers(min_value=1, max_value=200),
)
def test_a_table_fits_the_terminal_or_is_no_table(rows: list[list[str]], width: int) -> None:
    given = widths(["one", "two", "three"], rows, width)

    if given is not None:
        assert sum(given) + 2 * 2 <= width


def shown(columns: list[str], rows: list[list[str]], width: int) -> list[str]:
    out = io.StringIO()
    Printer(out, out, terminal=True, width=width).table(columns, rows)
    return out.getvalue().splitlines()


def test_names_in_any_column_are_not_broken_in_mid_word() -> None:
    checks = ["model_readable_by_all", "edited_since_start"]
    rows = [["gpu1", name, "the user of the service can read every file of the model " * 3] for name in checks]
    lines = shown(["host", "check", "detail"], rows, 60)

    assert all(any(name in line for line in lines) for name in checks)
    assert max(map(len, lines)) <= 60


def test_a_path_is_folded_between_its_folders_and_a_digest_never() -> None:
    assert fold("/srv/models/chat/model.gguf", 14) == ["/srv/models/", "chat/", "model.gguf"]
    digest = "0123456789abcdef" * 4
    assert fold(f"sha256 {digest} of the plan", 40) == ["sha256", digest, "of the plan"]
    assert fold("20261130-081502-chat-k3f7/12", 10) == ["20261130-081502-chat-k3f7/12"]


def test_wide_characters_take_two_places() -> None:
    rows = [["r1", "漢字 漢字 漢字"], ["r2", "e\u0301"]]
    lines = shown(["run", "why"], rows, 17)

    assert lines[2:] == ["r1   漢字 漢字", "     漢字", "r2   e\u0301"]
    assert max(map(cells, lines)) <= 17


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=80), st.integers(1, 40))
def test_folding_loses_nothing_but_blanks(text: str, width: int) -> None:
    assert "".join(fold(text, width)).replace(" ", "") == text.replace(" ", "")


def test_a_long_value_is_folded_below_itself_on_a_terminal_and_stays_one_line_elsewhere() -> None:
    text = "the service has to wait since the queue is full at every peak of the day"
    printer, out, _ = written(terminal=True)
    printer.paragraph(text, first="why      ")
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("why      the service")
    assert lines[1].startswith("         ")
    assert max(map(len, lines)) <= 60

    printer, out, _ = written(terminal=False)
    printer.paragraph(text, first="why      ")
    assert out.getvalue() == f"why      {text}\n"
