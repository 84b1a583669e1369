"""YAML as the operator wrote it: plain data whose scalars are the source's own text, and a place for every node.

YAML's guesses are the trap this module removes: `8` and `"8"`, `on`, `1e3`, `0x10` and `010` stay the text they are,
because a setting's value travels to a file or a command line as text. Whoever needs a number converts it knowingly.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from changectl.core.declared.source_syntax import one_line, syntax_problem, unreadable_character
from changectl.core.errors import InputError, Problem

Path = tuple[str | int, ...]

# What is meant by writing a key twice, where that is known.
_SECOND = {"change": "{first}; one step changes one thing: give the second one its own step, `- change: ...`"}
MAXIMUM_BYTES = 1 << 20  # a plan is read at 3 a.m.; whatever is larger than this is not a plan
MAXIMUM_NODES = 20_000  # aliases can multiply a small file without end
_HALF = re.compile("[\ud800-\udfff]")  # YAML's escapes can write what is no character, and no file or host takes it
_STANDARD = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_STANDARD + name for name in ("str", "int", "float", "bool", "null", "timestamp", "map", "seq"))
_IMPLICIT_TAGS = _PLAIN_TAGS | {_STANDARD + "merge", _STANDARD + "value"}


_NO_CHARACTER = ("half a character stands here (`\\ud800` to `\\udfff`)", "write both halves, or the character itself")


class Place(NamedTuple):
    """A position in a file, both counted from 1; 0 where it is not known."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file's content as plain data (str, list, dict; None where nothing is written) and where everything stands."""

    file: str
    data: Any = field(repr=False)  # of a rendered service it holds what templates gave: maybe secrets
    values: Mapping[Path, Place] = field(default_factory=dict)
    keys: Mapping[Path, Place] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()  # found while reading; the grammar's problems join them

    def problem(self, path: Path, message: str, hint: str = "", *, key: bool = False) -> Problem:
        """A problem at a node, or at the closest node that exists above it; `key` points at the key, not its value."""
        place = self.keys.get(path) if key else None
        above = path
        while place is None and above not in self.values and above:
            above = above[:-1]
        if place is None and above != path:  # something is missing: the mapping that lacks it is named by its own key
            place = self.keys.get(above)
        line, column = place or self.values.get(above, Place(0, 0))
        return Problem(message, self.file, line, column, show_path(path), hint)


def show_path(path: Sequence[str | int]) -> str:
    """The path as people count: `("steps", 0, "change")` is `steps/1/change`."""
    return "/".join(str(part + 1) if isinstance(part, int) else part for part in path)


def read_yaml(content: bytes | str, file: str) -> Source:
    """Read one YAML document.

    What can be reported together with the grammar's problems (duplicate keys, tags, empty values) is in `.problems`.

    Raises:
        InputError: the text is not one readable YAML document.
    """
    text = decode(content, file)
    node = _compose(text, file)
    if node is None:
        raise InputError(
            Problem("the file is empty", file, 1, 1, hint="this writes an example to start from: changectl init DIR")
        )
    reader = _Reader(file)
    try:
        data = reader.plain(node, (), ())
    except _TooManyNodesError:
        message = f"aliases make this file larger than {MAXIMUM_NODES} values"
        raise InputError(Problem(message, file, 1, 1, hint="write the values out instead of using aliases")) from None
    return Source(file, data, reader.values, reader.keys, tuple(reader.problems))


def decode(content: bytes | str, file: str) -> str:
    """Bytes of an operator's file as text. Raises InputError when it is too large or not UTF-8."""
    if len(content) > MAXIMUM_BYTES:
        raise InputError(Problem(f"the file is larger than {MAXIMUM_BYTES} bytes", file))
    if isinstance(content, str):
        return content.removeprefix("\ufeff")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        problem = Problem("not UTF-8 text", file, before.count(b"\n") + 1, column, hint="save the file as UTF-8")
        raise InputError(problem) from None


def _compose(text: str, file: str) -> Node | None:
    """The document's node tree. Raises InputError with the scanner's place and our own hint."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a reused anchor is legal; ruamel prints a warning for it
            node: Node | None = YAML(typ="safe", pure=True).compose(text)
    except RecursionError:
        raise InputError(Problem("nested too deeply", file, 1, 1)) from None
    except ReaderError as error:
        raise InputError(unreadable_character(text, file, error)) from None
    except MarkedYAMLError as error:
        raise InputError(syntax_problem(text, file, error)) from None
    except (
        YAMLError,
        ValueError,
        LookupError,
        AssertionError,
        NotImplementedError,
        TypeError,
        AttributeError,
    ) as error:
        # ruamel lets a few plain Python errors through on malformed directives, escapes and tags
        raise InputError(Problem(f"not readable as YAML: {one_line(error)}", file, 1, 1)) from None
    return node


class _TooManyNodesError(Exception):
    """Aliases multiply the document."""


class _Reader:
    """Turns a node tree into plain data, noting every place and every problem on the way."""

    def __init__(self, file: str) -> None:
        self.values: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.problems: list[Problem] = []
        self._file = file

    def plain(self, node: Node, path: Path, above: tuple[Node, ...]) -> Any:
        """The node's data; scalars as the text that stands in the file."""
        if len(self.values) >= MAXIMUM_NODES:
            raise _TooManyNodesError
        self.values[path] = _place(node)
        if any(node is ancestor for ancestor in above):
            self._report(node, path, "an alias that contains itself", "write the value out")
            return None
        if str(node.tag) not in _IMPLICIT_TAGS:
            hint = 'take the tag out; secrets belong in vault variables of the inventory, named here as `"{{ name }}"`'
            self._report(node, path, f"tags such as {_short_tag(node)} are not used here", hint)
        if isinstance(node, MappingNode):
            return self._mapping(node, path, (*above, node))
        if isinstance(node, SequenceNode):
            return [self.plain(item, (*path, index), (*above, node)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: Node, path: Path) -> str | None:
        text = str(node.value)
        plain_style = isinstance(node, ScalarNode) and not node.style
        if plain_style and text in {"", "~", "null", "Null", "NULL"}:
            what = f"`{text}` is no value" if text else "nothing is written here"
            hint = 'leave the key out, write `absent` for a setting that is not there, or quote the text: "null"'
            # An empty node's own mark lies at whatever comes next.
            line, column = self.keys.get(path, _place(node)) if not text else _place(node)
            self.problems.append(Problem(what, self._file, line, column, show_path(path), hint))
            return None
        if _HALF.search(text):
            self._report(node, path, *_NO_CHARACTER)
            return None
        return text

    def _mapping(self, node: MappingNode, path: Path, above: tuple[Node, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._report(key_node, path, "a key has to be one word", 'quote templates: `"{{ name }}"`')
                continue
            key = str(key_node.value)
            if str(key_node.tag) == _STANDARD + "merge" and not key_node.style:
                self._report(key_node, (*path, key), "merge keys (`<<`) are not used here", "write the keys out")
                continue
            if _HALF.search(key):
                self._report(key_node, path, *_NO_CHARACTER)
                continue
            if key in data:
                first = self.keys[(*path, key)].line
                hint = _SECOND.get(key, "{first}").format(first=f"the first is in line {first}")
                self._report(key_node, (*path, key), f"`{key}` stands here a second time", hint)
                continue
            self.keys[(*path, key)] = _place(key_node)
            data[key] = self.plain(value_node, (*path, key), above)
        return data

    def _report(self, node: Node, path: Path, message: str, hint: str) -> None:
        line, column = _place(node)
        self.problems.append(Problem(message, self._file, line, column, show_path(path), hint))


def _place(node: Node) -> Place:
    mark = node.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark is not None else Place(0, 0)


def _short_tag(node: Node) -> str:
    return str(node.tag).replace(_STANDARD, "!!")
