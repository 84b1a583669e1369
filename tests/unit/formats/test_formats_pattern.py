"""The escape hatch: one regular expression, one named group, exactly one match."""

# ruff: noqa: E501  (one case a line: the list is a table)
from __future__ import annotations

from tests.unit.formats.format_cases import Case, check, parametrized

from changectl import formats
from changectl.core.settings import Carrier, Key

KEY = Key(("--max-num-seqs",), "int")


def pattern(match: str | None) -> Carrier:
    return Carrier(format="pattern", file="start.sh", match=match)


SEQS = pattern(r"--max-num-seqs (?P<value>\d+)")
SCRIPT = """#!/bin/bash
set -e
# serves the chat model
exec vllm serve /srv/models/chat \\
  --max-num-seqs 64 \\
  --port "${PORT:-8000}" "$@"
"""
TOML = '[server]\nport = 8000\n\n[engine]\nbatch = 8 # tuned\nname = "chat"\n'
PBTXT = "max_batch_size: 8\ninstance_group [ { count: 2 kind: KIND_GPU } ]\n"

CASES = [
    Case("a script", SCRIPT, KEY, "128", SEQS, "seqs 64", "seqs 128", before="64"),
    Case("a TOML value", TOML, KEY, "16", pattern(r"^batch = (?P<value>\d+)"), "batch = 8", "batch = 16", before="8"),
    Case("a TOML text", TOML, KEY, "qa", pattern(r'^name = "(?P<value>[^"]*)"'), "chat", "qa", before="chat"),
    Case("a protobuf text value", PBTXT, KEY, "4", pattern(r"count: (?P<value>\d+)"), "count: 2", "count: 4", before="2"),
    Case("the start of a line", PBTXT, KEY, "16", pattern(r"^max_batch_size: (?P<value>\d+)$"), ": 8", ": 16", before="8"),
    Case("a Dockerfile", "FROM a\nENV MAX_BATCH=4\n", KEY, "8", pattern(r"^ENV MAX_BATCH=(?P<value>\d+)"), "=4", "=8", before="4"),
    Case("an nginx directive", "http {\n  keepalive_timeout 65;\n}\n", KEY, "30", pattern(r"keepalive_timeout (?P<value>\d+);"), "65", "30", before="65"),
    Case("an INI value", "[a]\nworkers=2\n", KEY, "3", pattern(r"^workers=(?P<value>.*)$"), "=2", "=3", before="2"),
    Case("a Modelfile", "FROM x\nPARAMETER num_ctx 4096\n", KEY, "8192", pattern(r"num_ctx (?P<value>\d+)"), "4096", "8192", before="4096"),
    Case("a Python setting", "bind = '0.0.0.0'\nworkers = 4\n", KEY, "2", pattern(r"^workers = (?P<value>\d+)"), "= 4", "= 2", before="4"),
    Case("a supervisor command", "[program:chat]\ncommand=srv --max-num-seqs 8 --x\n", KEY, "9", SEQS, "seqs 8", "seqs 9", before="8"),
    Case("a sysctl line", "vm.swappiness = 10\n", KEY, "1", pattern(r"^vm\.swappiness = (?P<value>\d+)"), "10", "1", before="10"),
    Case("a Lua table", "config = { workers = 4, log = true }\n", KEY, "8", pattern(r"workers = (?P<value>\d+)"), "4", "8", before="4"),
    Case("an XML attribute", '<pool size="8" name="a"/>\n', KEY, "9", pattern(r'size="(?P<value>\d+)"'), '"8"', '"9"', before="8"),
    Case("a shell variable's default", 'N=${N:-8}\nrun "$N"\n', KEY, "9", pattern(r"\$\{N:-(?P<value>\d+)\}"), ":-8", ":-9", before="8"),
    Case("an empty value", "a=\nb=1\n", KEY, "x", pattern(r"^a=(?P<value>.*)$"), "a=", "a=x", before=""),
    Case("to an empty value", "a=1\n", KEY, "", pattern(r"^a=(?P<value>.*)$"), "a=1", "a=", before="1"),
    Case("text on both sides that stays", "x 8 y\n", KEY, "9", pattern(r"x (?P<value>\d) y"), "8", "9", before="8"),
    Case("a lookbehind", "a=8\nb=8\n", KEY, "9", pattern(r"(?<=^b=)(?P<value>\d)"), "b=8", "b=9", before="8"),
    Case("CRLF is kept", "a=8\r\nb=1\r\n", KEY, "9", pattern(r"^a=(?P<value>\d+)"), "a=8", "a=9", before="8"),
    Case("no final newline", "a=8", KEY, "9", pattern(r"^a=(?P<value>\d+)$"), "a=8", "a=9", before="8"),
    Case("a byte order mark", "\ufeffa=8\n", KEY, "9", pattern(r"a=(?P<value>\d+)"), "a=8", "a=9", before="8"),
    Case("bytes that are no UTF-8", "# caf\udce9\na=8\n", KEY, "9", pattern(r"a=(?P<value>\d+)"), "a=8", "a=9", before="8"),
    Case("characters beyond ASCII", "名=模型\n", KEY, "新", pattern(r"名=(?P<value>\S+)"), "模型", "新", before="模型"),
    Case("case does not matter if the pattern says so", "SEQS 8\n", KEY, "9", pattern(r"(?i)seqs (?P<value>\d)"), "8", "9", before="8"),
    Case("several lines as one match", "a:\n  b: 8\n", KEY, "9", pattern(r"^a:\n  b: (?P<value>\d)"), "8", "9", before="8"),
    Case("an alternative", "workers 8\n", KEY, "9", pattern(r"(?:threads|workers) (?P<value>\d)"), "8", "9", before="8"),
    Case("no match", SCRIPT, KEY, "1", pattern(r"--seed (?P<value>\d+)"), refusal="matches nothing"),
    Case("two matches", "a=1\na=2\n", KEY, "3", pattern(r"^a=(?P<value>\d)"), refusal=r"2 times \(lines 1, 2\)"),
    Case("a match in a comment too", "# a=1\na=2\n", KEY, "3", pattern(r"a=(?P<value>\d)"), refusal="2 times"),
    Case("to absent", SCRIPT, KEY, None, SEQS, refusal="cannot be made absent"),
    Case("no expression", SCRIPT, KEY, "1", pattern(None), refusal="needs `match`"),
    Case("a broken expression", SCRIPT, KEY, "1", pattern("(?P<value>"), refusal="no regular expression"),
    Case("no named group", SCRIPT, KEY, "1", pattern(r"seqs (\d+)"), refusal="no named group"),
    Case("another named group", SCRIPT, KEY, "1", pattern(r"seqs (?P<n>\d+)"), refusal="no named group"),
    Case("a group that takes no part", "a\n", KEY, "1", pattern(r"a(?P<value>\d)?"), refusal="matches nothing"),
    Case("a repetition of a repetition", "a\n", KEY, "1", pattern(r"(?P<value>(a+)+)$"), refusal="take forever"),
    Case("a repetition of a named repetition", "a\n", KEY, "1", pattern(r"(?P<value>\w+)*x"), refusal="take forever"),
    Case("an expression that is too long", "a\n", KEY, "1", pattern("(?P<value>a)" + "b?" * 600), refusal="characters"),
    Case("a file that is too long", "a" * 1_000_001, KEY, "1", pattern("(?P<value>b)"), refusal="characters"),
    Case("a value that no longer matches", SCRIPT, KEY, "many", SEQS, refusal="would not be understood"),
    Case("a value that is only half matched", SCRIPT, KEY, "12x", SEQS, refusal="would be read as '12'"),
    Case("a value that matches a second time", "a 1\n", KEY, "1,a,1", pattern(r"(?<![\w:])a? ?(?P<value>\d|1,a,1)(?=,|$)"), refusal="cannot be written"),
    Case("a command substitution", SCRIPT, KEY, "$(reboot)", pattern(r"--max-num-seqs (?P<value>.+?) "), refusal="may be a script"),
    Case("a second command", "N=8\n", KEY, "8;reboot", pattern(r"^N=(?P<value>.*)$"), refusal="';'"),
    Case("a command behind an assignment", "N=8\n", KEY, "8 reboot", pattern(r"^N=(?P<value>.*)$"), refusal="' '"),
    Case("a blank between quotes", 'name = "chat"\n', KEY, "chat two", pattern(r'^name = "(?P<value>[^"]*)"'), "chat", "chat two", before="chat"),
    Case("a variable between quotes", 'N="8"\n', KEY, "$HOME", pattern(r'^N="(?P<value>[^"]*)"'), refusal=r"'\$'"),
    Case("a quote between quotes", 'N="8"\n', KEY, 'a"b', pattern(r'^N="(?P<value>.*)"$'), refusal="may be a script"),
    Case("quotes that close before the value", 'N="a"8"b"\n', KEY, "8 x", pattern(r'^N="a"(?P<value>[^"]*)"b"'), refusal="' '"),
    Case("quotes of another kind around", "N='\"8\"'\n", KEY, "8 x", pattern(r'"(?P<value>[^"]*)"'), refusal="' '"),
    Case("a line break in the value", SCRIPT, KEY, "1\n2", SEQS, refusal="line break"),
]  # fmt: skip


@parametrized(CASES)
def test_the_group_is_replaced_or_the_edit_refused(case: Case) -> None:
    check(case)


def test_settings_are_the_one_value() -> None:
    assert formats.settings(SCRIPT.encode(), SEQS) == {"value": ("64",)}
