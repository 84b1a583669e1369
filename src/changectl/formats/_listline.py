"""A command line written as a list, one word per element, in brackets or as lines with dashes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.formats._flow import flow_insert, flow_remove
from changectl.formats._text import cut_lines, line_end, line_start, newline, refuse, splice
from changectl.formats._tree import ListWord, Node
from changectl.formats._yamlscalar import fresh_scalar, is_numeric, new_scalar


@dataclass(frozen=True, slots=True)
class JsonList:
    """A JSON list of strings."""

    text: str
    node: Node
    words: Sequence[ListWord]

    def replace(self, index: int, keep: int, value: str) -> str:
        """The element at `index` becomes its first `keep` characters followed by `value`."""
        old = self.words[index]
        if not old.node.style:
            refuse(f"the element {old.value} is no text", old.line)
        written = json.dumps(old.value[:keep] + value, ensure_ascii=False)
        return splice(self.text, old.node.start, old.node.end, written)

    def insert(self, index: int, values: Sequence[str]) -> str:
        """New elements stand before the one at `index`."""
        return flow_insert(self.text, self.node, index, [json.dumps(value, ensure_ascii=False) for value in values])

    def remove(self, first: int, last: int) -> str:
        """The elements from `first` to `last` are gone."""
        return flow_remove(self.text, self.node, first, last)


@dataclass(frozen=True, slots=True)
class YamlList:
    """A YAML list of scalars; below docker compose's services a dollar is written twice."""

    text: str
    node: Node
    words: Sequence[ListWord]
    compose: bool

    def replace(self, index: int, keep: int, value: str) -> str:
        """The element at `index` becomes its first `keep` characters followed by `value`."""
        old = self.words[index]
        if keep and old.references_from(0):
            refuse("the element holds a variable before the value", old.line)
        written = new_scalar(old.node, self._raw(old.value[:keep] + value), self.node.flow)
        return splice(self.text, old.node.start, old.node.end, written)

    def insert(self, index: int, values: Sequence[str]) -> str:
        """New elements stand before the one at `index`, quoted as the last one there."""
        written = [self._fresh(self._raw(value)) for value in values]
        if self.node.flow:
            return flow_insert(self.text, self.node, index, written)
        entries = self.node.entries
        dash = self._dash(len(entries) - 1)
        lines = [f"{' ' * (entries[0].column)}{dash}{part}" for part in written]
        if index < len(entries):
            position = line_start(self.text, entries[index].start)
            self._own_line(index)
            return splice(self.text, position, position, "".join(line + newline(self.text) for line in lines))
        self._own_line(len(entries) - 1, first_may_share=True)
        position = line_end(self.text, entries[-1].end)
        return splice(self.text, position, position, "".join(newline(self.text) + line for line in lines))

    def remove(self, first: int, last: int) -> str:
        """The elements from `first` to `last` are gone with their lines."""
        if self.node.flow:
            return flow_remove(self.text, self.node, first, last)
        if last - first + 1 == len(self.words):
            refuse("this would leave the list without elements", self.node.line)
        text = self.text
        for index in range(last, first - 1, -1):
            self._own_line(index)
            text = cut_lines(text, self.node.entries[index].start, self.node.entries[index].end)
        return text

    def _raw(self, value: str) -> str:
        return value.replace("$", "$$") if self.compose else value

    def _fresh(self, value: str) -> str:
        """Quoted where the neighbours are, and where a bare number would be no text among texts."""
        last = self.node.entries[-1].node if self.node.entries else None
        quote = last.style if last and last.style in ("'", '"') else "" if last else '"'
        numbers = any(not entry.node.style and is_numeric(entry.node.value) for entry in self.node.entries)
        return fresh_scalar(value, quote, flow=self.node.flow, numbers_bare=numbers)

    def _dash(self, index: int) -> str:
        entry = self.node.entries[index]
        dash = self.text[line_start(self.text, entry.start) + entry.column : entry.node.start]
        return dash if dash.strip() == "-" else "- "

    def _own_line(self, index: int, *, first_may_share: bool = False) -> None:
        """Refuse unless the element is one line with nothing else in it but a comment."""
        entry = self.node.entries[index]
        before = self.text[line_start(self.text, entry.start) : entry.start].strip()
        shares = before != "-" and not (first_may_share and before.endswith("-"))
        if shares or "\n" in self.text[entry.node.start : entry.end] or entry.node.style in ("|", ">"):
            refuse("the element does not stand on a line of its own", entry.line)
