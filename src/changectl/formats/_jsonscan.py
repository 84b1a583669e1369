"""A strict JSON reader that keeps the place of every value."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from changectl.formats._text import BOM, is_unicode, line_of, line_start, refuse
from changectl.formats._tree import Entry, Node

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LITERAL = re.compile(r"true|false|null")
_BLANK = re.compile(r"[ \t\r\n]*")
# Deeper than any configuration; guards against running out of stack.
_DEEPEST = 200


def scan(text: str) -> Node:
    """The document's one value.

    Raises:
        EditRefused: it is no strict JSON (comments, trailing commas, ...), or a name stands twice in one object.
    """
    if not is_unicode(text):
        refuse("the file is not UTF-8, which JSON demands")
    scanner = _Scanner(text)
    position = scanner.blank(len(BOM) if text.startswith(BOM) else 0)
    if position == len(text):
        refuse("the file is empty; JSON needs a value")
    node = scanner.value(position, 0)
    if scanner.blank(node.end) != len(text):
        scanner.refuse("something follows the end of the JSON value", scanner.blank(node.end))
    return node


def is_number(text: str) -> bool:
    """Whether a text is a JSON number."""
    return bool(_NUMBER.fullmatch(text))


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def refuse(self, message: str, position: int) -> NoReturn:
        if self.text.startswith(("//", "/*", "#"), position):
            message = "comments are no JSON; a pattern carrier can edit this file"
        refuse(message, line_of(self.text, position))

    def blank(self, position: int) -> int:
        found = _BLANK.match(self.text, position)
        return found.end() if found else position

    def value(self, position: int, depth: int) -> Node:
        if depth > _DEEPEST:
            self.refuse("the values are nested too deeply", position)
        char = self.text[position : position + 1]
        if char == "{":
            return self._collection(position, depth, "}")
        if char == "[":
            return self._collection(position, depth, "]")
        line = line_of(self.text, position)
        string = _STRING.match(self.text, position)
        if string:
            return Node("scalar", position, string.end(), line, json.loads(string.group()), '"')
        plain = _NUMBER.match(self.text, position) or _LITERAL.match(self.text, position)
        if not plain:
            self.refuse(f"a JSON value is expected, not {self.text[position : position + 10]!r}", position)
        return Node("scalar", position, plain.end(), line, plain.group())

    def _collection(self, position: int, depth: int, close: str) -> Node:
        entries: list[Entry] = []
        seen: dict[str, int] = {}
        current = self.blank(position + 1)
        # A closing bracket right here is an empty collection; after a comma it is an error that the member reports.
        while entries or self.text[current : current + 1] != close:
            entry = self._member(current, depth) if close == "}" else self._element(current, depth)
            if close == "}" and entry.key in seen:
                self.refuse(f"{entry.key!r} stands twice in one object (first in line {seen[entry.key]})", current)
            seen[entry.key] = entry.line
            entries.append(entry)
            current = self.blank(entry.end)
            if self.text[current : current + 1] == close:
                break
            if self.text[current : current + 1] != ",":
                self.refuse(f"a comma or {close} is expected", current)
            current = self.blank(current + 1)
        line = line_of(self.text, position)
        return Node("map" if close == "}" else "list", position, current + 1, line, entries=tuple(entries))

    def _element(self, position: int, depth: int) -> Entry:
        node = self.value(position, depth + 1)
        return Entry(node, position, node.line, position - line_start(self.text, position))

    def _member(self, position: int, depth: int) -> Entry:
        name = _STRING.match(self.text, position)
        if not name:
            self.refuse("a name in double quotes is expected", position)
        colon = self.blank(name.end())
        if self.text[colon : colon + 1] != ":":
            self.refuse("a colon is expected after the name", colon)
        node = self.value(self.blank(colon + 1), depth + 1)
        column = position - line_start(self.text, position)
        key = str(json.loads(name.group()))
        return Entry(node, position, line_of(self.text, position), column, key, name.end())
