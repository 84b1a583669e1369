"""What holds for every file and value: edits can be taken back, change one value, and read as what was written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changectl import formats
from changectl.core.errors import EditRefused
from changectl.core.settings import Carrier, Key, Value

UNIT = Carrier(format="flags", unit="a.service")
ARGUMENTS = Carrier(format="flags", file="args")
ENV = Carrier(format="env", file="env")
UNIT_ENV = Carrier(format="env", unit="a.service")
YAML = Carrier(format="yaml", file="a.yaml", at="engine")
JSON = Carrier(format="json", file="a.json", at="engine")
COMPOSE = Carrier(format="yaml", file="c.yaml", at="services.a.command", then="flags")
PATTERN = Carrier(format="pattern", file="a.conf", match=r"^wanted = (?P<value>.*?)\r?$")

FLAG = Key(("--wanted",), "int")
NAME = Key(("wanted",), "int")

numbers = st.integers(0, 10**6).map(str)
# Everything a person may type on one line; blanks, quotes, escapes and signs of every format among it.
texts = st.text(st.sampled_from("abzAZ09 _-.,:;#'\"\\$%{}[]()=&*!|>@`~/<é模🙂"), max_size=12)
neighbours = st.lists(st.sampled_from(["a", "bb", "ccc-d", "e"]), unique=True, max_size=4)
endings = st.sampled_from(["\n", "\r\n"])


@st.composite
def documents(draw: st.DrawFn, format_name: str, value: Value) -> bytes:
    """A file of the format with some neighbours and, unless None, the wanted key among them."""
    others = [(name, draw(numbers)) for name in draw(neighbours)]
    members = [*others]
    if value is not None:
        members.insert(draw(st.integers(0, len(others))), ("wanted", value))
    end = draw(endings)
    text = _WRITERS[format_name](members, draw(st.booleans()), draw(st.integers(1, 5)))
    text = text if draw(st.booleans()) else text.removesuffix("\n")
    return text.replace("\n", end).encode()


Members = list[tuple[str, str]]


def _unit(members: Members, joined: bool, indent: int) -> str:
    gap = " \\\n" + " " * indent if indent > 2 else " "
    words = [f"--{name}{'=' if joined else ' '}{value}" for name, value in members]
    return "[Service]\n# the command\nExecStart=" + gap.join(["/bin/srv", *words]) + "\nRestart=always\n"


def _arguments(members: Members, joined: bool, indent: int) -> str:
    gap = "\n" if indent > 2 else " "
    return "# options\n" + gap.join(["srv", *(f"--{n}{'=' if joined else ' '}{v}" for n, v in members)]) + "\n"


def _env(members: Members, quoted: bool, indent: int) -> str:
    quote = '"' if quoted else ""
    return "; top\n" + "".join(f"{name.replace('-', '_')}={quote}{value}{quote}\n" for name, value in members)


def _unit_env(members: Members, quoted: bool, indent: int) -> str:
    quote = '"' if quoted else ""
    words = [f"{quote}{name.replace('-', '_')}={value}{quote}" for name, value in members]
    lines = "Environment=" + " ".join(words) if indent > 3 and words else "\n".join(f"Environment={w}" for w in words)
    return f"[Service]\nType=simple\n{lines}\n\n[Install]\nWantedBy=x\n"


def _yaml(members: Members, flow: bool, indent: int) -> str:
    if flow:
        return "top: 1\nengine: {" + ", ".join(f"{n}: {v}" for n, v in [("first", "1"), *members]) + "}\nend: 2\n"
    pad = " " * indent
    return (
        f"engine:\n{pad}first: 1 # one\n" + "".join(f"{pad}{name}: {value}\n" for name, value in members) + "end: 2\n"
    )


def _json(members: Members, compact: bool, indent: int) -> str:
    document = {"top": [1], "engine": {name: int(value) for name, value in members}, "end": {}}
    return json.dumps(document, indent=None if compact else indent) + "\n"


def _compose(members: Members, flow: bool, indent: int) -> str:
    words = [word for name, value in members for word in (f"--{name}", value)]
    if flow:
        return "services:\n  a:\n    command: [" + ", ".join(json.dumps(w) for w in ["x", *words]) + "]\nend: 1\n"
    lines = "".join(f'      - "{word}"\n' for word in ["x", *words])
    return f"services:\n  a:\n    command:\n{lines}end: 1\n"


def _pattern(members: Members, _joined: bool, _indent: int) -> str:
    return "[x]\n" + "".join(f"{name} = {value}\n" for name, value in members)


_WRITERS = {
    "unit": _unit,
    "arguments": _arguments,
    "env": _env,
    "unit_env": _unit_env,
    "yaml": _yaml,
    "json": _json,
    "compose": _compose,
    "pattern": _pattern,
}
_CARRIERS = {
    "unit": (UNIT, FLAG),
    "arguments": (ARGUMENTS, FLAG),
    "env": (ENV, NAME),
    "unit_env": (UNIT_ENV, NAME),
    "yaml": (YAML, NAME),
    "json": (JSON, NAME),
    "compose": (COMPOSE, FLAG),
    "pattern": (PATTERN, NAME),
}
# A busy machine is no reason to fail: no deadline.
quickly = settings(max_examples=50, deadline=None)
every_format = pytest.mark.parametrize("format_name", sorted(_WRITERS))
inserting = pytest.mark.parametrize("format_name", sorted(set(_WRITERS) - {"pattern"}))


def _changed(before: bytes, after: bytes, carrier: Carrier) -> list[str]:
    old, new = formats.settings(before, carrier), formats.settings(after, carrier)
    return [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]


@every_format
@quickly
@given(data=st.data(), old=numbers, new=numbers)
def test_a_replaced_value_can_be_put_back_byte_by_byte(
    format_name: str, data: st.DataObject, old: str, new: str
) -> None:
    carrier, key = _CARRIERS[format_name]
    document = data.draw(documents(format_name, old))

    edited = formats.edit(document, carrier, key, new)

    assert formats.read(edited, carrier, key).value == new
    assert formats.edit(edited, carrier, key, old) == document
    assert len(_changed(document, edited, carrier)) == (old != new)


@inserting
@quickly
@given(data=st.data(), new=numbers)
def test_an_inserted_value_can_be_removed_byte_by_byte(format_name: str, data: st.DataObject, new: str) -> None:
    carrier, key = _CARRIERS[format_name]
    document = data.draw(documents(format_name, None))

    edited = formats.edit(document, carrier, key, new)

    assert formats.read(edited, carrier, key).value == new
    assert formats.edit(edited, carrier, key, None) == document


@inserting
@quickly
@given(data=st.data(), old=numbers)
def test_a_removed_value_is_gone_and_nothing_else_is(format_name: str, data: st.DataObject, old: str) -> None:
    carrier, key = _CARRIERS[format_name]
    document = data.draw(documents(format_name, old))

    edited = formats.edit(document, carrier, key, None)

    assert formats.read(edited, carrier, key).value is None
    assert [name for name in _changed(document, edited, carrier) if not name.endswith("(empty map)")] in (
        ["wanted"],
        ["--wanted"],
    )


@every_format
@quickly
@given(data=st.data(), old=numbers, new=texts)
def test_any_text_reads_back_as_itself_or_is_refused(format_name: str, data: st.DataObject, old: str, new: str) -> None:
    carrier, number = _CARRIERS[format_name]
    key = Key(number.names)
    document = data.draw(documents(format_name, data.draw(st.sampled_from([old, None]))))

    try:
        edited = formats.edit(document, carrier, key, new)
    except EditRefused:
        return

    assert formats.read(edited, carrier, key).value == new
    assert [name for name in _changed(document, edited, carrier) if not name.endswith("(empty map)")] in (
        [],
        ["wanted"],
        ["--wanted"],
        ["value"],
    )


_SCRAPS = st.sampled_from(
    [
        *(
            "[Service]\n",
            "ExecStart=",
            "Environment=",
            "--wanted",
            "wanted",
            "=",
            ": ",
            " ",
            "\n",
            "\r",
            "\\",
            '"',
            "'",
        ),
        *(
            "#",
            "%",
            "$",
            "${A}",
            "$$",
            "%%",
            "{",
            "}",
            "[",
            "]",
            ",",
            "- ",
            "|",
            ">",
            "&a ",
            "*a",
            "<<: ",
            "8",
            "\ufeff",
        ),
        *("engine", "services:\n a:\n  command: ", "engine:\n ", '{"engine": {"', "\t", "\x85", "\u2028", "---\n", "é"),
    ]
)


@every_format
@quickly
@given(scraps=st.lists(_SCRAPS, max_size=14), to=st.one_of(st.none(), texts), noise=st.binary(max_size=3))
def test_any_bytes_are_edited_or_refused_but_never_crash(
    format_name: str, scraps: list[str], to: Value, noise: bytes
) -> None:
    carrier, key = _CARRIERS[format_name]
    document = "".join(scraps).encode() + noise

    try:
        edited = formats.edit(document, carrier, key, to)
    except EditRefused:
        return

    assert formats.read(edited, carrier, key).value == to
