"""YAML files: found with ruamel.yaml's parser, edited in the bytes, never written anew."""

from __future__ import annotations

from dataclasses import replace

from changectl.core.settings import Carrier, Key, Reading, Value
from changectl.formats._commandline import CommandLine, nested_line
from changectl.formats._flow import flow_insert, flow_remove
from changectl.formats._listline import YamlList
from changectl.formats._optionedit import edit_option
from changectl.formats._options import list_options, read_options
from changectl.formats._pieces import COMPOSE, SPLIT
from changectl.formats._text import (
    Settings,
    ValueElsewhere,
    append_line,
    cut_lines,
    decode,
    encode,
    line_end,
    line_start,
    newline,
    refuse,
    splice,
)
from changectl.formats._tree import (
    Entry,
    ListWord,
    Node,
    descend,
    find_entry,
    flatten,
    list_words,
    read_entry,
    refuse_borrowed,
)
from changectl.formats._yamlscalar import new_scalar, new_value
from changectl.formats._yamlscan import scan


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """The value of the key in the map `at` (or, with `then: flags`, of the option in the list or text there)."""
    text = decode(data)
    if carrier.then:
        return read_options(_line(text, carrier).words, key)
    node = _map(text, carrier)
    entry = find_entry(node, key) if node else None
    reading = read_entry(entry, key)
    if entry is None or not _is_compose(carrier):
        return reading
    word = ListWord(entry.node, compose=True)
    for reference in word.references_from(0):
        raise ValueElsewhere(
            f"line {entry.line}: the value of {entry.key} comes from the variable {reference[1:]}; change it where "
            "docker compose takes it from",
            reference[1:],
        )
    return Reading(tuple(replace(one, value=word.value) for one in reading.occurrences))


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file with the value replaced in its own style, inserted at the end of its map, or removed with its line."""
    text = decode(data)
    if carrier.then:
        return encode(edit_option(_line(text, carrier), key, to))
    node = _map(text, carrier)
    entry = find_entry(node, key) if node else None
    to = to.replace("$", "$$") if to and _is_compose(carrier) else to
    if entry is None:
        return encode(_insert(text, node, key, str(to)))
    refuse_borrowed(entry.node, entry.key)
    if to is None:
        return encode(_remove(text, node, entry, nested=bool(carrier.at)))
    return encode(_replace(text, entry, to, flow=bool(node and node.flow)))


def settings(data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
    """Scalars by dotted name below `at`, or the options there; `whole` adds the rest of the file."""
    text = decode(data)
    root = scan(text)
    if root is None:
        return {}
    place = descend(root, carrier.at)
    if not carrier.then:
        return flatten(root if whole else place.node)
    found = list_options(_line(text, carrier).words, key)
    return {**flatten(root, skip=place.node), **found} if whole else found


def _is_compose(carrier: Carrier) -> bool:
    """Whether docker compose puts variables into the values there."""
    return (carrier.at or "").startswith("services.")


def _map(text: str, carrier: Carrier) -> Node | None:
    """The map the key lives in; None: the file has no content, and the map is the top."""
    root = scan(text)
    if root is None:
        if carrier.at:
            refuse(f"the file has no content, so there is no {carrier.at!r} in it")
        return None
    return descend(root, carrier.at).node


def _line(text: str, carrier: Carrier) -> CommandLine | YamlList:
    root = scan(text)
    if carrier.then != "flags" or not carrier.at or root is None:
        refuse("only `then: flags` with an address `at` is known inside YAML")
    compose = _is_compose(carrier)
    node = descend(root, carrier.at).node
    refuse_borrowed(node, carrier.at)
    if node.kind == "list":
        return YamlList(text, node, list_words(node, compose), compose)
    if node.kind != "scalar" or not node.value:
        refuse(f"{carrier.at} is neither a list nor a text, so it holds no arguments", node.line)
    start, end = _inside(text, node)
    return nested_line(text, start, end, node.value, COMPOSE if compose else SPLIT)


def _inside(text: str, node: Node) -> tuple[int, int]:
    """The span of a scalar's text without quotes or block header."""
    if node.style in ("|", ">"):
        start = text.find("\n", node.start) + 1
        return start, start + len(text[start : node.end].rstrip())
    quote = 1 if node.style else 0
    return node.start + quote, node.end - quote


def _replace(text: str, entry: Entry, to: str, *, flow: bool) -> str:
    node = entry.node
    if node.start == node.end:
        refuse(f"{entry.key} has no value there; write one first", entry.line)
    if "\n" in text[node.start : node.end] and node.style not in ("|", ">"):
        refuse(f"the value of {entry.key} spans several lines; only one-line values can be replaced", entry.line)
    return splice(text, node.start, node.end, new_scalar(node, to, flow))


def _insert(text: str, node: Node | None, key: Key, to: str) -> str:
    line = f"{key.names[0]}: {new_value(to, key.type, key.names[0])}"
    if node is None:
        return append_line(text, line)
    if node.flow:
        return flow_insert(text, node, len(node.entries), [line])
    last = node.entries[-1]
    if _ends_in_open_block(text, last.node):
        refuse(
            "the map ends with a text that keeps its blank lines (|+, >+); nothing can follow it",
            last.line,
        )
    indent = " " * node.entries[0].column
    # A block's end mark lies behind blank lines and comments; the map ends with its last written character.
    end = last.key_end if last.end == last.node.start else len(text[: last.end].rstrip())
    end = line_end(text, max(end, last.key_end))
    return splice(text, end, end, newline(text) + indent + line)


def _ends_in_open_block(text: str, node: Node) -> bool:
    while node.kind != "scalar" and node.entries and not node.flow:
        node = node.entries[-1].node
    return node.style in ("|", ">") and "+" in text[node.start : line_end(text, node.start)]


def _remove(text: str, node: Node | None, entry: Entry, *, nested: bool) -> str:
    if node is None or node.flow:
        index = node.entries.index(entry) if node else 0
        return flow_remove(text, node, index, index) if node else text
    if text[line_start(text, entry.start) : entry.start].strip("\ufeff \t"):
        refuse(f"{entry.key} shares its line with what is before it, so its line cannot be removed", entry.line)
    if nested and len(node.entries) == 1:
        refuse(f"{entry.key} is the only key of its map; removing it would leave the map without a value", entry.line)
    if "\n" in text[entry.start : entry.end] or entry.node.style in ("|", ">"):
        refuse(f"the value of {entry.key} spans several lines; remove it by hand", entry.line)
    return cut_lines(text, entry.start, max(entry.end, entry.key_end))
