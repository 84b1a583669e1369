"""Bracketed collections, as JSON and YAML's flow style write them: members added and taken out as splices."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.formats._text import refuse, splice
from changectl.formats._tree import Node


def flow_separator(text: str, node: Node) -> str:
    """What stands between two members there: a comma and the blanks or line break after it."""
    if len(node.entries) > 1:
        gap = text[node.entries[-2].end : node.entries[-1].start]
        if "#" not in gap and gap.strip() == ",":
            return gap
    lead = text[node.start + 1 : node.entries[0].start] if node.entries else ""
    return "," + (lead if "\n" in lead and not lead.strip() else " ")


def flow_insert(text: str, node: Node, index: int, written: Sequence[str]) -> str:
    """New members stand before the one at `index` (at the end: the number of members)."""
    separator = flow_separator(text, node)
    if not node.entries:
        return splice(text, node.start + 1, node.start + 1, ", ".join(written))
    if index < len(node.entries):
        position = node.entries[index].start
        return splice(text, position, position, "".join(part + separator for part in written))
    position = node.entries[-1].end
    return splice(text, position, position, "".join(separator + part for part in written))


def flow_remove(text: str, node: Node, first: int, last: int) -> str:
    """The members from `first` to `last` are gone, with one comma."""
    if first > 0:
        start, end = node.entries[first - 1].end, node.entries[last].end
        between = text[start : node.entries[first].start]
    else:
        start = node.entries[0].start
        end = node.entries[last + 1].start if last + 1 < len(node.entries) else node.entries[last].end
        between = text[node.entries[last].end : end]
    if "#" in between:
        refuse("a comment stands beside the member to remove; remove both by hand", node.entries[first].line)
    return splice(text, start, end, "")
