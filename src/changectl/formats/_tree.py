"""Maps, lists and scalars of YAML and JSON with their places in the text; what both formats do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from changectl.core.settings import Key, Occurrence, Reading
from changectl.formats._text import EMPTY_MAP, refuse, same_name


@dataclass(frozen=True, slots=True)
class Node:
    """One value and its span."""

    kind: Literal["map", "list", "scalar"]
    start: int
    end: int  # for block collections: the end of the last entry's value
    line: int
    value: str = ""  # scalars: decoded text
    style: str = ""  # scalars: "" plain, "'", '"', "|", ">"; JSON strings are '"'
    flow: bool = True  # collections: written with brackets
    entries: tuple[Entry, ...] = ()
    borrowed: str = ""  # why the value is not this place's own: an alias, an anchor, a tag


@dataclass(frozen=True, slots=True)
class Entry:
    """One member of a map (with its key) or of a list (without)."""

    node: Node
    start: int  # of the key; in lists: of the value
    line: int
    column: int = 0  # of the start, 0-based
    key: str = ""
    key_end: int = 0

    @property
    def end(self) -> int:
        """Where the entry's value ends."""
        return self.node.end


@dataclass(frozen=True, slots=True)
class Place:
    """The value found under an address."""

    node: Node
    parent: Node | None = None
    entry: Entry | None = None
    path: tuple[str, ...] = field(default=())


def descend(root: Node, at: str | None) -> Place:
    """The value at a dotted address; a list index is a number.

    Raises:
        EditRefused: nothing stands there, or the way leads through an alias.
    """
    place = Place(root)
    steps = at.split(".") if at else []
    while steps:
        node, reached = place.node, ".".join(place.path) or "the top"
        refuse_borrowed(node, reached)
        entry, taken = _step(node, steps)
        if entry is None:
            refuse(f"there is no {steps[0]!r} in {reached}, which the address {at!r} leads to", node.line)
        place = Place(entry.node, node, entry, (*place.path, ".".join(steps[:taken])))
        steps = steps[taken:]
    return place


def _step(node: Node, steps: Sequence[str]) -> tuple[Entry | None, int]:
    """The entry that the next steps name (a key may hold dots itself) and how many steps it takes."""
    if node.kind == "list":
        index = int(steps[0]) if steps[0].isdigit() else -1
        return (node.entries[index], 1) if 0 <= index < len(node.entries) else (None, 1)
    for taken in range(1, len(steps) + 1):
        for entry in node.entries:
            if node.kind == "map" and entry.key == ".".join(steps[:taken]):
                return entry, taken
    return None, 1


def refuse_borrowed(node: Node, name: str) -> None:
    """Refuse a value that belongs to another place too."""
    if node.borrowed:
        refuse(f"{name} {node.borrowed}", node.line)


def find_entry(node: Node, key: Key) -> Entry | None:
    """The map's entry under the first of the key's names that stands there.

    Raises:
        EditRefused: the value is no map, two spellings of the name stand in it, or a merge may bring it in.
    """
    refuse_borrowed(node, "this map")
    if node.kind != "map":
        refuse(f"{key.names[0]} is looked for in a {node.kind}; the address has to lead to a map", node.line)
    for name in key.names:
        hits = [entry for entry in node.entries if same_name(entry.key, name, key.underscores)]
        if len(hits) > 1:
            lines = ", ".join(str(hit.line) for hit in hits)
            refuse(f"{name} stands there in two spellings (lines {lines}), and it is not certain which one counts")
        if hits:
            return hits[0]
    merges = [entry for entry in node.entries if entry.key == "<<" and not entry.node.style]
    if merges:
        refuse(f"{key.names[0]} may come from the merge (<<) in this map; edit it where it is written", merges[0].line)
    return None


def read_entry(entry: Entry | None, key: Key) -> Reading:
    """What callers see of an entry: one occurrence or none."""
    if entry is None:
        return Reading()
    node = entry.node
    refuse_borrowed(node, entry.key)
    if node.kind != "scalar":
        refuse(f"{entry.key} holds a {node.kind}, not a single value", entry.line)
    value = node.value
    if key.type == "bool" and not node.style and value.lower() in ("true", "yes", "on", "false", "no", "off"):
        value = "true" if value.lower() in ("true", "yes", "on") else "false"
    return Reading((Occurrence(value, entry.line, entry.key),))


def flatten(node: Node, path: tuple[str, ...] = (), skip: Node | None = None) -> dict[str, tuple[str, ...]]:
    """Every scalar by its dotted address; `skip` leaves one value out."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in _scalars(node, path, skip):
        found[name] = (*found.get(name, ()), value)
    return found


def _scalars(node: Node, path: tuple[str, ...], skip: Node | None) -> Iterator[tuple[str, str]]:
    if node is skip:
        return
    if node.kind == "scalar":
        yield ".".join(path), node.value
    elif not node.entries:
        yield ".".join((*path, EMPTY_MAP if node.kind == "map" else "(empty list)")), ""
    for index, entry in enumerate(node.entries):
        step = entry.key if node.kind == "map" else f"#{index}"
        yield from _scalars(entry.node, (*path, step), skip)


@dataclass(frozen=True, slots=True)
class ListWord:
    """One element of a list that holds a command line."""

    node: Node
    compose: bool  # docker compose replaces `$NAME` here, and `$$` is a dollar

    @property
    def value(self) -> str:
        """The decoded text."""
        return self.node.value.replace("$$", "$") if self.compose else self.node.value

    @property
    def line(self) -> int:
        """1-based."""
        return self.node.line

    @property
    def splits(self) -> str:
        """Empty: an element is always one word."""
        return ""

    def references_from(self, offset: int) -> tuple[str, ...]:
        """Variables that docker compose puts in from an offset on."""
        found, position = [], 0
        text = self.node.value
        while self.compose and (position := text.find("$", position)) >= 0:
            name = _variable_name(text[position + 1 :])
            if name and position >= offset:
                found.append("$" + name)
            position += 2 if text.startswith("$$", position) else 1
        return tuple(found)


def _variable_name(text: str) -> str:
    name = ""
    for char in text.removeprefix("{"):
        if not (char.isalnum() or char == "_"):
            break
        name += char
    return "" if name[:1].isdigit() else name


def list_words(node: Node, compose: bool) -> list[ListWord]:
    """The elements of a list as words. Raises EditRefused where one is no text."""
    words = []
    for entry in node.entries:
        refuse_borrowed(entry.node, "an element of the list")
        if entry.node.kind != "scalar":
            refuse("an element of the argument list is no single value", entry.line)
        words.append(ListWord(entry.node, compose))
    return words
