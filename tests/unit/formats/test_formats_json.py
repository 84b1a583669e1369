"""JSON files, and command lines inside them."""

# ruff: noqa: E501  (one case a line: the list is a table)
from __future__ import annotations

from tests.unit.formats.format_cases import Case, check, parametrized

from changectl import formats
from changectl.core.settings import Carrier, Key

FILE = Carrier(format="json", file="/etc/mlserver/settings.json")
ARGS = Carrier(format="json", file="app.json", at="engine.args", then="flags")
FLAG = Key(("--max-num-seqs",), "int")
WORKERS = Key(("parallel_workers",), "int")
A, B, C = Key(("a",), "int"), Key(("b",), "int"), Key(("c",), "int")
TEXT = Key(("name",))

SETTINGS = """{
    "debug": false,
    "parallel_workers": 1,
    "http_port": 8080,
    "name": "chat",
    "timeout": 2.5,
    "cors": {"allow": ["*"], "max_age": 600}
}
"""


def at(address: str) -> Carrier:
    return Carrier(format="json", file="x.json", at=address)


def args(value: str) -> str:
    return f'{{"engine": {{"args": {value}}}, "port": 80}}\n'


CASES = [
    Case("a number", SETTINGS, WORKERS, "4", FILE, '"parallel_workers": 1', '"parallel_workers": 4', before="1"),
    Case("a fraction", SETTINGS, Key(("timeout",), "float"), "3.5", FILE, "2.5", "3.5", before="2.5"),
    Case("a text", SETTINGS, TEXT, 'it\'s "x"', FILE, '"chat"', '"it\'s \\"x\\""', before="chat"),
    Case("a switch", SETTINGS, Key(("debug",), "bool"), "true", FILE, "false", "true", before="false"),
    Case("a nested number", SETTINGS, Key(("max_age",), "int"), "60", at("cors"), "600", "60", before="600"),
    Case("dashes and underscores are the same", SETTINGS, Key(("parallel-workers",), "int"), "4", FILE, ": 1,", ": 4,", before="1"),
    Case("dashes and underscores differ if the engine says so", '{"a_b": 1}', Key(("a-b",), "int", underscores=False), "4", FILE, "1", '1, "a-b": 4'),
    Case("insertion into an indented object", SETTINGS, Key(("grpc_port",), "int"), "8081", FILE, "600}\n", '600},\n    "grpc_port": 8081\n'),
    Case("insertion into an object on one line", SETTINGS, Key(("credentials",), "bool"), "true", at("cors"), "600}", '600, "credentials": true}'),
    Case("insertion into an empty object", "{}\n", A, "1", FILE, "{}", '{"a": 1}'),
    Case("insertion into a compact object", '{"a":1,"b":2}', C, "3", FILE, '"b":2', '"b":2,"c":3'),
    Case("insertion into an indented object with one member", '{\n  "a": 1\n}\n', B, "2", FILE, '"a": 1', '"a": 1,\n  "b": 2'),
    Case("insertion keeps tabs", '{\n\t"a": 1,\n\t"b": 2\n}\n', C, "3", FILE, '"b": 2', '"b": 2,\n\t"c": 3'),
    Case("insertion keeps blanks around the colon", '{"a" : 1}', B, "2", FILE, "1", '1, "b" : 2'),
    Case("a text is inserted in quotes", '{"a": 1}', TEXT, "8", FILE, "1", '1, "name": "8"'),
    Case("a word for a number is inserted in quotes", '{"a": 1}', B, "auto", FILE, "1", '1, "b": "auto"'),
    Case("a switch that is none", '{"a": 1}', Key(("b",), "bool"), "maybe", FILE, refusal="of type bool"),
    Case("removal of the first", '{"a": 1, "b": 2}', A, None, FILE, '"a": 1, ', "", before="1"),
    Case("removal of the last", '{"a": 1, "b": 2}', B, None, FILE, ', "b": 2', "", before="2"),
    Case("removal of one in the middle", '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}\n', B, None, FILE, ',\n  "b": 2', "", before="2"),
    Case("removal of the only one", '{"m": {"a": 1}}', A, None, at("m"), '"a": 1', "", before="1"),
    Case("a name that stands twice", '{"a": 1,\n"a": 2}', A, "3", FILE, refusal="line 2: 'a' stands twice"),
    Case("a name that stands twice elsewhere", '{"a": 1, "m": {"b": 1, "b": 2}}', A, "3", FILE, refusal="'b' stands twice"),
    Case("two spellings of a name", '{"a-b": 1, "a_b": 2}', Key(("a_b",), "int"), "3", FILE, refusal="two spellings"),
    Case("an escaped name is the same name", '{"\\u0061": 1}', A, "3", FILE, "1}", "3}", before="1"),
    Case("the same name in other objects", '{"m": {"a": 1}, "a": 2, "n": {"a": 3}}', A, "9", FILE, "2", "9", before="2"),
    Case("a line comment", '{\n// why\n"a": 1}', A, "3", FILE, refusal="line 2: comments"),
    Case("a block comment", '{"a": 1 /* why */}', A, "3", FILE, refusal="comments"),
    Case("a comma too many", '{"a": 1,}', A, "3", FILE, refusal="name in double quotes"),
    Case("a comma too few", '{"a": 1 "b": 2}', A, "3", FILE, refusal="comma"),
    Case("single quotes", "{'a': 1}", A, "3", FILE, refusal="double quotes"),
    Case("a number that is none in JSON", '{"a": 012}', A, "3", FILE, refusal="comma"),
    Case("a word that is none in JSON", '{"a": NaN}', A, "3", FILE, refusal="JSON value is expected"),
    Case("an open string", '{"a": "x}', A, "3", FILE, refusal="JSON value is expected"),
    Case("an open object", '{"a": 1', A, "3", FILE, refusal="comma"),
    Case("something behind the end", '{"a": 1} x', A, "3", FILE, refusal="follows the end"),
    Case("an empty file", "", A, "3", FILE, refusal="empty"),
    Case("a list at the top", "[1]", A, "3", FILE, refusal="has to lead to a map"),
    Case("an object as value", '{"a": {"b": 1}}', A, "3", FILE, refusal="holds a map"),
    Case("an address that leads nowhere", '{"a": 1}', A, "3", at("m"), refusal="no 'm'"),
    Case("an index into a list", '{"m": [{"a": 1}, {"a": 2}]}', A, "3", at("m.1"), "2", "3", before="2"),
    Case("a number that would become a text", '{"a": 1}', A, "auto", FILE, refusal="number there"),
    Case("a number that may become a text", '{"a": 1}', Key(("a",)), "auto", FILE, "1", '"auto"', before="1"),
    Case("a text stays a text", '{"a": "1"}', A, "2", FILE, '"1"', '"2"', before="1"),
    Case("a switch stays a switch", '{"a": true}', A, "2", FILE, refusal="neither"),
    Case("nothing becomes a number", '{"a": null}', A, "2", FILE, "null", "2", before="null"),
    Case("an odd number in JSON", '{"a": 8}', A, "010", FILE, refusal="number there"),
    Case("a number with an exponent", '{"a": 8}', A, "1e3", FILE, "8", "1e3", before="8"),
    Case("CRLF is kept", '{\r\n  "a": 1,\r\n  "b": 2\r\n}\r\n', C, "3", FILE, '"b": 2', '"b": 2,\r\n  "c": 3'),
    Case("a byte order mark", '\ufeff{"a": 1}', A, "3", FILE, "1", "3", before="1"),
    Case("characters beyond ASCII", '{"模": "型🙂", "a": 1}', A, "3", FILE, "1", "3", before="1"),
    Case("bytes that are no UTF-8", '{"a": "\udce9"}', A, "3", FILE, refusal="UTF-8"),
    Case("nested too deeply", "[" * 300, A, "3", FILE, refusal="too deeply"),
    Case("an option in a list", args('["--max-num-seqs", "8"]'), FLAG, "9", ARGS, '"8"', '"9"', before="8"),
    Case("a joined option in a list", args('["--max-num-seqs=8"]'), FLAG, "9", ARGS, "=8", "=9", before="8"),
    Case("an option is appended to a list", args('["--a=1"]'), FLAG, "9", ARGS, '"--a=1"', '"--a=1", "--max-num-seqs=9"'),
    Case("an option is appended to an empty list", args("[]"), FLAG, "9", ARGS, "[]", '["--max-num-seqs", "9"]'),
    Case("an option is removed from a list", args('["--max-num-seqs", "8", "--b"]'), FLAG, None, ARGS, '"--max-num-seqs", "8", ', "", before="8"),
    Case("an option in a text", args('"--a 1 --max-num-seqs 8"'), FLAG, "9", ARGS, "seqs 8", "seqs 9", before="8"),
    Case("an option in a text with escapes", args('"--a \\"x y\\" --max-num-seqs 8"'), FLAG, "9", ARGS, refusal="plainly"),
    Case("a number where arguments are expected", args("3"), FLAG, "9", ARGS, refusal="neither a list nor a text"),
    Case("one element with a blank in it", args('["--max-num-seqs 8"]'), FLAG, "9", ARGS, refusal="one word with a space"),
]  # fmt: skip


@parametrized(CASES)
def test_a_value_is_edited_in_place_or_refused(case: Case) -> None:
    check(case)


def test_settings_are_scalars_by_dotted_name() -> None:
    assert formats.settings(b'{"a": {"b": 1, "c": ["x"]}, "d": []}', FILE) == {
        "a.b": ("1",),
        "a.c.#0": ("x",),
        "d.(empty list)": ("",),
    }
