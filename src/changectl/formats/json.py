"""JSON files: strict, no duplicate names, no comments."""

from __future__ import annotations

import json

from changectl.core.settings import Carrier, Key, Reading, Value
from changectl.formats._commandline import CommandLine, nested_line
from changectl.formats._flow import flow_insert, flow_remove
from changectl.formats._jsonscan import is_number, scan
from changectl.formats._listline import JsonList
from changectl.formats._optionedit import edit_option
from changectl.formats._options import list_options, read_options
from changectl.formats._pieces import SPLIT
from changectl.formats._text import Settings, decode, encode, refuse, splice
from changectl.formats._tree import Node, descend, find_entry, flatten, list_words, read_entry


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """The value of the name in the object `at` (or, with `then: flags`, of the option in the list or string there)."""
    text = decode(data)
    if carrier.then:
        return read_options(_line(text, carrier).words, key)
    return read_entry(find_entry(descend(scan(text), carrier.at).node, key), key)


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file with the value replaced, inserted at the end of its object, or removed with its comma."""
    text = decode(data)
    if carrier.then:
        return encode(edit_option(_line(text, carrier), key, to))
    node = descend(scan(text), carrier.at).node
    entry = find_entry(node, key)
    if entry is None:
        written = json.dumps(key.names[0], ensure_ascii=False) + _colon(text, node) + _fresh(str(to), key)
        return encode(flow_insert(text, node, len(node.entries), [written]))
    if to is None:
        index = node.entries.index(entry)
        return encode(flow_remove(text, node, index, index))
    return encode(splice(text, entry.node.start, entry.node.end, _written(entry.node, to, key)))


def settings(data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
    """Scalars by dotted name below `at`, or the options there; `whole` adds the rest of the file."""
    text = decode(data)
    root = scan(text)
    place = descend(root, carrier.at)
    if not carrier.then:
        return flatten(root if whole else place.node)
    found = list_options(_line(text, carrier).words, key)
    return {**flatten(root, skip=place.node), **found} if whole else found


def _line(text: str, carrier: Carrier) -> CommandLine | JsonList:
    node = descend(scan(text), carrier.at).node
    if carrier.then != "flags" or not carrier.at:
        refuse("only `then: flags` with an address `at` is known inside JSON")
    if node.kind == "list":
        return JsonList(text, node, list_words(node, compose=False))
    if node.kind != "scalar" or not node.style:
        refuse(f"{carrier.at} is neither a list nor a text, so it holds no arguments", node.line)
    return nested_line(text, node.start + 1, node.end - 1, node.value, SPLIT)


def _colon(text: str, node: Node) -> str:
    """What stands between name and value in this object."""
    if not node.entries:
        return ": "
    first = node.entries[-1]
    between = text[first.key_end : first.node.start]
    return between if "\n" not in between else ": "


def _fresh(value: str, key: Key) -> str:
    if key.type in ("int", "float") and is_number(value):
        return value
    if key.type == "bool" and value in ("true", "false"):
        return value
    if key.type in ("bool", "float"):
        refuse(f"{key.names[0]} is of type {key.type}, and {value!r} is not")
    return json.dumps(value, ensure_ascii=False)


def _written(old: Node, value: str, key: Key) -> str:
    """The new value as the old one's type: text stays text, a number stays a number."""
    if old.style:
        return json.dumps(value, ensure_ascii=False)
    if old.value in ("true", "false"):
        if value not in ("true", "false"):
            refuse(f"{key.names[0]} is true or false there, and {value!r} is neither", old.line)
        return value
    if old.value == "null":
        return _fresh(value, key)
    if not is_number(value) and key.type != "str":
        refuse(f"{key.names[0]} is a number there, and {value!r} is none", old.line)
    return value if is_number(value) else json.dumps(value, ensure_ascii=False)
