"""Environment variables in files and in units."""

# ruff: noqa: E501  (one case a line: the list is a table)
from __future__ import annotations

import pytest
from tests.unit.formats.format_cases import Case, check, parametrized

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key

FILE = Carrier(format="env", file="/etc/default/chat")
UNIT = Carrier(format="env", unit="ollama.service")
ARGS = Carrier(format="env", file="/etc/default/chat", at="ARGS", then="flags")
UNIT_ARGS = Carrier(format="env", unit="chat.service", at="ARGS", then="flags")
PAR = Key(("OLLAMA_NUM_PARALLEL",), "int")
SEQS = Key(("--max-num-seqs",), "int")
TWO = Key(("MAX_INPUT_TOKENS", "MAX_INPUT_LENGTH"), "int")

OLLAMA = """# Managed by hand
; and a second kind of comment

OLLAMA_HOST=0.0.0.0:11434
OLLAMA_NUM_PARALLEL=4
OLLAMA_MODELS="/srv/ollama models"
OLLAMA_ORIGINS='*'
"""
DROP_IN = """[Service]
Environment="OLLAMA_HOST=0.0.0.0"
Environment="OLLAMA_NUM_PARALLEL=4" OLLAMA_DEBUG=1
"""

CASES = [
    Case("a bare value", OLLAMA, PAR, "8", FILE, "PARALLEL=4", "PARALLEL=8", before="4"),
    Case("double quotes are kept", OLLAMA, Key(("OLLAMA_MODELS",)), "/m", FILE, "/srv/ollama models", "/m", before="/srv/ollama models"),
    Case("single quotes are kept", OLLAMA, Key(("OLLAMA_ORIGINS",)), "http://a", FILE, "'*'", "'http://a'", before="*"),
    Case("a new line at the end", OLLAMA, Key(("OLLAMA_KEEP_ALIVE",)), "5m", FILE, "'*'\n", "'*'\nOLLAMA_KEEP_ALIVE=5m\n"),
    Case("a line is removed", OLLAMA, PAR, None, FILE, "OLLAMA_NUM_PARALLEL=4\n", "", before="4"),
    Case("a value that needs quotes", "A=1\n", Key(("A",)), "x y", FILE, "A=1", 'A="x y"', before="1"),
    Case("a value with double quotes gets single ones", "A=1\n", Key(("A",)), '{"a": 1}', FILE, "A=1", "A='{\"a\": 1}'", before="1"),
    Case("a quote inside double quotes is escaped", 'A="1"\n', Key(("A",)), 'say "x"', FILE, '"1"', '"say \\"x\\""', before="1"),
    Case("an apostrophe takes double quotes", "A='1'\n", Key(("A",)), "it's", FILE, "'1'", '"it\'s"', before="1"),
    Case("an empty value", "A=\nB=2\n", Key(("A",)), "1", FILE, "A=", "A=1", before=""),
    Case("to an empty value", "A=1\n", Key(("A",)), "", FILE, "A=1", "A=", before="1"),
    Case("blanks around the value stay", "A= 1 \nB=2\n", Key(("A",)), "3", FILE, " 1 ", " 3 ", before="1"),
    Case("the last of several counts", "A=1\nB=2\nA=3\n", Key(("A",)), "4", FILE, "A=3", "A=4", before="3"),
    Case("several are not removed", "A=1\nB=2\nA=3\n", Key(("A",)), None, FILE, refusal="lines 1, 3"),
    Case("export is not understood", "export A=1\n", Key(("A",)), "2", FILE, refusal="`export`"),
    Case("export of something else does not matter", "export B=1\nA=1\n", Key(("A",)), "2", FILE, "\nA=1", "\nA=2", before="1"),
    Case("a comment behind the value", "A=8 # tuned\n", Key(("A",)), "9", FILE, refusal="part of the value"),
    Case("a hash inside the value", "A=a#b\n", Key(("A",)), "c#d", FILE, "A=a#b", 'A="c#d"', before="a#b"),
    Case("a commented line is nothing", "#A=1\nB=2\n", Key(("A",)), "3", FILE, "B=2\n", "B=2\nA=3\n"),
    Case("a semicolon comment is nothing", ";A=1\nB=2\n", Key(("A",)), "3", FILE, "B=2\n", "B=2\nA=3\n"),
    Case("a comment that swallowed the next line", "# see \\\nA=1\n", Key(("A",)), "3", FILE, refusal="older systemd"),
    Case("a continued value", "A=one\\\ntwo\nB=2\n", Key(("A",)), "x", FILE, "one\\\ntwo", "x", before="onetwo"),
    Case("a continued value is removed whole", "A=one\\\ntwo\nB=2\n", Key(("A",)), None, FILE, "A=one\\\ntwo\n", "", before="onetwo"),
    Case("a continued value of another variable hides nothing", "B=one\\\nA=1\nC=2\n", Key(("A",)), "3", FILE, "C=2\n", "C=2\nA=3\n"),
    Case("a value over two lines in quotes", 'A="x\ny"\nB=1\n', Key(("A",)), "z", FILE, "x\ny", "z", before="x\ny"),
    Case("a name inside another's quotes is no name", 'B="\nA=1\n"\nC=2\n', Key(("A",)), "3", FILE, "C=2\n", "C=2\nA=3\n"),
    Case("an escaped blank", "A=x\\ y\n", Key(("A",)), "z", FILE, "x\\ y", "z", before="x y"),
    Case("pieces in different quotes", "A='x'\"y\"z\n", Key(("A",)), "w", FILE, "'x'\"y\"z", "w", before="xyz"),
    Case("a backslash in double quotes that escapes nothing", 'A="\\d"\n', Key(("A",)), "e", FILE, "\\d", "e", before="\\d"),
    Case("a quote in the middle is a character", "A=a'b\n", Key(("A",)), "c", FILE, "a'b", "c", before="a'b"),
    Case("an equals sign in the value", "A=--x=1\n", Key(("A",)), "--x=2", FILE, "--x=1", "--x=2", before="--x=1"),
    Case("an open quote", 'A="x\nB=2\n', Key(("B",)), "3", FILE, refusal="never closed"),
    Case("a line without an equals sign", "nonsense\nA=1\n", Key(("A",)), "2", FILE, "A=1", "A=2", before="1"),
    Case("indented lines", "  A=1\n", Key(("A",)), "2", FILE, "A=1", "A=2", before="1"),
    Case("a blank before the equals sign", "A =1\n", Key(("A",)), "2", FILE, "=1", "=2", before="1"),
    Case("CRLF is kept", "A=1\r\nB=2\r\n", Key(("A",)), "3", FILE, "A=1", "A=3", before="1"),
    Case("CRLF on a new line", "A=1\r\nB=2\r\n", Key(("C",)), "3", FILE, "B=2\r\n", "B=2\r\nC=3\r\n"),
    Case("no final newline", "A=1\nB=2", Key(("C",)), "3", FILE, "B=2", "B=2\nC=3"),
    Case("removal without a final newline", "A=1\nB=2", Key(("B",)), None, FILE, "\nB=2", "", before="2"),
    Case("a byte order mark", "\ufeffA=1\n", Key(("A",)), "2", FILE, "A=1", "A=2", before="1"),
    Case("an open last line", "A=1\\", Key(("B",)), "2", FILE, refusal="backslash"),
    Case("the first present name counts", "MAX_INPUT_LENGTH=10\n", TWO, "20", FILE, "=10", "=20", before="10"),
    Case("the first name is inserted", "A=1\n", TWO, "20", FILE, "A=1\n", "A=1\nMAX_INPUT_TOKENS=20\n"),
    Case("a name that is none", "A=1\n", Key(("A B",)), "2", FILE, refusal="no name"),
    Case("a value that is no UTF-8", "A=\udce9\n", Key(("A",)), "2", FILE, refusal="UTF-8"),
    Case("a dollar sign is a character", "A='1'\n", Key(("A",)), "$HOME", FILE, "'1'", "'$HOME'", before="1"),
    Case("a second command for a shell", "A=1\n", Key(("A",)), "a|id>z", FILE, "A=1", 'A="a|id>z"', before="1"),
    Case("a command behind an assignment", "A=1\n", Key(("A",)), "1;reboot", FILE, "A=1", 'A="1;reboot"', before="1"),
    Case("a command substitution", "A=1\n", Key(("A",)), "$(id)", FILE, "A=1", "A='$(id)'", before="1"),
    Case("a command substitution in double quotes", 'A="1"\n', Key(("A",)), "$(id)`id`", FILE, '"1"', '"\\$(id)\\`id\\`"', before="1"),
    Case("a home folder", "A=1\n", Key(("A",)), "~/m", FILE, "A=1", 'A="~/m"', before="1"),
    Case("a backslash is not put into single quotes", "A='1'\n", Key(("A",)), "a\\b", FILE, "'1'", '"a\\\\b"', before="1"),
    Case("a pattern for files", "A=1\n", Key(("A",)), "*.gguf", FILE, "A=1", 'A="*.gguf"', before="1"),
    Case("a command substitution inside a variable's options", 'ARGS="--alias a"\n', Key(("--alias",)), "$(id)", ARGS, refusal="shell"),
    Case("a command behind a bare variable", "ARGS=--alias=a\n", Key(("--alias",)), "a;id", ARGS, refusal="shell"),
    Case("a quote inside a variable's single quotes", "ARGS='--alias a'\n", Key(("--alias",)), "a'b", ARGS, refusal="shell|cannot be written"),
    Case("a quoted unit variable", DROP_IN, PAR, "8", UNIT, "PARALLEL=4", "PARALLEL=8", before="4"),
    Case("a bare unit variable", DROP_IN, Key(("OLLAMA_DEBUG",)), "0", UNIT, "DEBUG=1", "DEBUG=0", before="1"),
    Case("a unit variable that needs quotes", DROP_IN, Key(("OLLAMA_DEBUG",)), "a b", UNIT, "OLLAMA_DEBUG=1", '"OLLAMA_DEBUG=a b"', before="1"),
    Case("a new unit line after the last", DROP_IN, Key(("OLLAMA_KEEP_ALIVE",)), "5m", UNIT, "DEBUG=1\n", "DEBUG=1\nEnvironment=OLLAMA_KEEP_ALIVE=5m\n"),
    Case("a new quoted unit line", DROP_IN, Key(("A",)), "x y", UNIT, "DEBUG=1\n", 'DEBUG=1\nEnvironment="A=x y"\n'),
    Case("a first unit line at the end of the section", "[Service]\nType=simple\n\n[Install]\nWantedBy=a\n", PAR, "2", UNIT, "simple\n", "simple\nEnvironment=OLLAMA_NUM_PARALLEL=2\n"),
    Case("a first unit line in an empty section", "[Service]\n", PAR, "2", UNIT, "[Service]\n", "[Service]\nEnvironment=OLLAMA_NUM_PARALLEL=2\n"),
    Case("a first unit line without final newline", "[Service]\nType=simple", PAR, "2", UNIT, "simple", "simple\nEnvironment=OLLAMA_NUM_PARALLEL=2"),
    Case("one of two on a unit line is removed", DROP_IN, PAR, None, UNIT, '"OLLAMA_NUM_PARALLEL=4" ', "", before="4"),
    Case("the only one of a unit line is removed with it", DROP_IN, Key(("OLLAMA_HOST",)), None, UNIT, 'Environment="OLLAMA_HOST=0.0.0.0"\n', "", before="0.0.0.0"),
    Case("a reset unit variable is absent", "[Service]\nEnvironment=A=1\nEnvironment=\n", Key(("A",)), "2", UNIT, "Environment=\n", "Environment=\nEnvironment=A=2\n"),
    Case("a unit line over two lines", "[Service]\nEnvironment=A=1 \\\n  B=2\n", Key(("B",)), "3", UNIT, "B=2", "B=3", before="2"),
    Case("a percent sign in a unit", "[Service]\nEnvironment=A=1\n", Key(("A",)), "5%", UNIT, "A=1", "A=5%%", before="1"),
    Case("a dollar in a unit is a character", "[Service]\nEnvironment=A=$B\n", Key(("A",)), "$C", UNIT, "$B", "$C", before="$B"),
    Case("a specifier in a unit", "[Service]\nEnvironment=A=%h/m\n", Key(("A",)), "2", UNIT, refusal="specifier %h"),
    Case("a drop-in without its section", 'Environment="A=1"\n', Key(("A",)), "2", UNIT, refusal=r"no \[Service\]"),
    Case("a unit with CRLF", "[Service]\r\nEnvironment=A=1\r\n", Key(("B",)), "2", UNIT, "A=1\r\n", "A=1\r\nEnvironment=B=2\r\n"),
    Case("an option inside a variable", 'ARGS="--port 80 --max-num-seqs 8"\n', SEQS, "9", ARGS, "seqs 8", "seqs 9", before="8"),
    Case("an option is added inside a variable", 'ARGS="--port 80"\n', SEQS, "9", ARGS, "--port 80", "--port 80 --max-num-seqs 9"),
    Case("an option is removed inside a variable", "ARGS='--port 80 --max-num-seqs 8'\n", SEQS, None, ARGS, " --max-num-seqs 8", "", before="8"),
    Case("an option inside an unquoted variable", "ARGS=--port 80 --max-num-seqs 8\n", SEQS, "9", ARGS, "seqs 8", "seqs 9", before="8"),
    Case("an option inside an empty variable", 'ARGS=""\n', SEQS, "9", ARGS, '""', '"--max-num-seqs 9"'),
    Case("a variable that is not there", "B=1\n", SEQS, "9", ARGS, refusal="no variable ARGS"),
    Case("escapes that hide where words stand", 'ARGS="--alias \\"a b\\" --max-num-seqs 8"\n', SEQS, "9", ARGS, refusal="written plainly|write it plainly"),
    Case("a value that does not fit into the quotes around it", 'ARGS="--alias a"\n', Key(("--alias",)), "a b", ARGS, refusal="cannot be written"),
    Case("an option inside a unit's variable", '[Service]\nEnvironment="ARGS=--port 80 --max-num-seqs 8"\n', SEQS, "9", UNIT_ARGS, "seqs 8", "seqs 9", before="8"),
    Case("only flags inside a variable", "ARGS=1\n", SEQS, "9", Carrier(format="env", file="x", at="ARGS", then="yaml"), refusal="only flags"),
]  # fmt: skip


@parametrized(CASES)
def test_a_variable_is_edited_in_place_or_refused(case: Case) -> None:
    check(case)


def test_settings_of_a_file_are_its_variables() -> None:
    assert formats.settings(b"A=1\n# B=2\nA='3'\n", FILE) == {"A": ("1", "3")}


def test_settings_of_a_unit_are_its_variables_only() -> None:
    assert formats.settings(b"[Service]\nType=simple\nEnvironment=A=1 'B=x y'\n", UNIT) == {"A": ("1",), "B": ("x y",)}


def test_an_open_quote_in_a_unit_is_refused() -> None:
    with pytest.raises(EditRefused, match=r"line 2: .*never closed"):
        formats.read(b'[Service]\nEnvironment="A=1\n', UNIT, Key(("A",)))


@pytest.mark.parametrize(
    ("carrier", "data", "place"),
    [
        (
            Carrier(format="env", file="/etc/chat.env", at="ARG", then="flags"),
            b'ARGS="--a 1"\nPORT=1\n',
            "/etc/chat.env",
        ),
        (
            Carrier(format="env", unit="chat.service", at="ARG", then="flags"),
            b"[Service]\nEnvironment=ARGS=--a PORT=1\nExecStart=/x\n",
            "the unit chat.service",
        ),
    ],
)
def test_a_variable_that_is_not_there_is_told_with_its_file_its_entry_and_those_that_are(
    carrier: Carrier, data: bytes, place: str
) -> None:
    with pytest.raises(EditRefused) as refused:
        formats.read(data, carrier, Key(names=("--a",)))

    assert str(refused.value).startswith(f"{place} sets no variable ARG; it sets: ARGS, PORT. ")
    assert "`at: ARG` in the entry of `config`" in str(refused.value)
