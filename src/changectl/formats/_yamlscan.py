"""YAML with the place of every value: ruamel.yaml's parser reads, nothing is ever written by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from changectl.formats._text import BOM, is_unicode, refuse
from changectl.formats._tree import Entry, Node

_ALIAS = "is an alias (*{}): it is written elsewhere, and editing it there changes every place that uses it"
_ANCHOR = "has an anchor (&{}): other places use it, and editing it would change them too"
_TAG = "has a tag ({}), which decides what it means"


def scan(text: str) -> Node | None:
    """The document's root, or None for a file without content.

    Raises:
        EditRefused: no YAML, several documents, or a key that stands twice in one map.
    """
    if not is_unicode(text):
        refuse("the file is not UTF-8, which YAML demands")
    shift = len(BOM) if text.startswith(BOM) else 0
    builder = _Builder(text, shift)
    try:
        events = iter(YAML(typ="safe", pure=True).parse(text[shift:]))
        return builder.document(events)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        refuse(f"this is no valid YAML: {getattr(error, 'problem', None) or error}", mark.line + 1 if mark else 0)


class _Builder:
    def __init__(self, text: str, shift: int) -> None:
        self.text, self.shift = text, shift

    def document(self, events: Iterator[Any]) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    refuse("the file holds several documents; only one can be addressed", event.start_mark.line + 1)
                root = self._node(next(events), events)
        if root and root.kind == "scalar" and not root.value and not root.style and root.start == root.end:
            return None
        return root

    def _node(self, event: Any, events: Iterator[Any]) -> Node:
        kind = type(event).__name__
        start, line = event.start_mark.index + self.shift, event.start_mark.line + 1
        if kind == "AliasEvent":
            name = getattr(event.anchor, "value", event.anchor)
            return Node("scalar", start, event.end_mark.index + self.shift, line, borrowed=_ALIAS.format(name))
        borrowed = self._borrowed(event)
        if kind == "ScalarEvent":
            end = event.end_mark.index + self.shift
            style = event.style or ""
            start = self._content_start(start, borrowed)
            return Node("scalar", start, end, line, str(event.value), style, borrowed=borrowed)
        entries = self._map(events) if kind == "MappingStartEvent" else self._list(event, events)
        end = self.last_mark if event.flow_style else entries[-1].end if entries else start
        if event.flow_style:
            start = self._content_start(start, borrowed)
        collection = "map" if kind == "MappingStartEvent" else "list"
        flow = bool(event.flow_style)
        return Node("map" if collection == "map" else "list", start, end, line, "", "", flow, tuple(entries), borrowed)

    last_mark = 0

    def _borrowed(self, event: Any) -> str:
        anchor = getattr(event, "anchor", None)
        if anchor:
            return _ANCHOR.format(getattr(anchor, "value", anchor))
        tag = getattr(event, "tag", None)
        return _TAG.format(tag) if tag else ""

    def _content_start(self, start: int, borrowed: str) -> int:
        """Behind an anchor or tag; such values are never edited, only passed over."""
        if not borrowed:
            return start
        while self.text[start : start + 1] in ("&", "!"):
            while start < len(self.text) and not self.text[start].isspace():
                start += 1
            while start < len(self.text) and self.text[start] in " \t":
                start += 1
        return start

    def _map(self, events: Iterator[Any]) -> list[Entry]:
        entries: list[Entry] = []
        seen: dict[str, int] = {}
        for event in events:
            if type(event).__name__ == "MappingEndEvent":
                self.last_mark = event.end_mark.index + self.shift
                break
            name = self._node(event, events)
            if name.kind != "scalar":
                refuse("a map or list as a key cannot be addressed", name.line)
            node = self._node(next(events), events)
            if name.value in seen and not name.borrowed:
                refuse(
                    f"{name.value!r} stands twice in one map (first in line {seen[name.value]}), and readers disagree "
                    "on which one counts",
                    name.line,
                )
            seen[name.value] = name.line
            key = "" if name.borrowed else name.value
            column = event.start_mark.column
            entries.append(Entry(node, event.start_mark.index + self.shift, name.line, column, key, name.end))
        return entries

    def _list(self, start: Any, events: Iterator[Any]) -> list[Entry]:
        entries: list[Entry] = []
        for event in events:
            if type(event).__name__ == "SequenceEndEvent":
                self.last_mark = event.end_mark.index + self.shift
                break
            node = self._node(event, events)
            # In block style the column is that of the dash.
            column = event.start_mark.column if start.flow_style else start.start_mark.column
            entries.append(Entry(node, event.start_mark.index + self.shift, node.line, column))
        return entries
