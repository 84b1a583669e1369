"""The escape hatch: one regular expression with the named group `value` that matches exactly once in the file."""

from __future__ import annotations

import re

from changectl.core.settings import Carrier, Key, Occurrence, Reading, Value
from changectl.formats._text import Settings, decode, encode, line_of, line_start, refuse, splice

_LONGEST_FILE = 1_000_000  # characters
_LONGEST_PATTERN = 1_000
_ALLOWED = "_./:,+@%=-"
# A repetition of something that is itself repeated, such as (a+)+, can take longer than any change may wait.
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)\s*(?:[+*]|\{\d*,)")


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """The text of the group `value`."""
    text = decode(data)
    found = _match(text, carrier)
    return Reading((Occurrence(found["value"], line_of(text, found.start("value")), key.names[0]),))


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file with the text of the group replaced; a pattern can neither insert nor remove."""
    if to is None:
        refuse(f"a pattern can only replace: {key.names[0]} cannot be made absent with it")
    text = decode(data)
    found = _match(text, carrier)
    _check_text(to, text, found)
    return encode(splice(text, found.start("value"), found.end("value"), to))


def settings(data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
    """The one value under the key's name; `whole` adds everything before and after it."""
    text = decode(data)
    found = _match(text, carrier)
    around = {"(before)": (text[: found.start("value")],), "(after)": (text[found.end("value") :],)} if whole else {}
    return {key.names[0] if key else "value": (found["value"],), **around}


def _check_text(value: str, text: str, found: re.Match[str]) -> None:
    """Refuse what could be more than text: nobody knows here whether the file is a script that a shell runs."""
    allowed = _ALLOWED + (" " if _is_quoted(text, found) else "")
    strange = sorted({char for char in value if not (char.isalnum() or char in allowed)})
    if strange:
        refuse(
            f"{value!r} holds {' '.join(map(repr, strange))}; a pattern writes letters, digits and {_ALLOWED} only "
            "(and blanks between the quotes of a line), since the file may be a script, in which others are commands"
        )


def _is_quoted(text: str, found: re.Match[str]) -> bool:
    """Whether the group is the whole text between two quotes, the first of which opens on this line."""
    start, end = found.span("value")
    line = text[line_start(text, start) : start]
    quote = line[-1:]
    opens = quote in ('"', "'") and line.count(quote) % 2 == 1
    return opens and text[end : end + 1] == quote and not set(line) & ({'"', "'", "\\"} - {quote})


def _match(text: str, carrier: Carrier) -> re.Match[str]:
    if not carrier.match:
        refuse("a pattern carrier needs `match`: a regular expression with the named group `value`")
    if len(carrier.match) > _LONGEST_PATTERN or len(text) > _LONGEST_FILE:
        refuse(f"a pattern may have {_LONGEST_PATTERN} characters and its file {_LONGEST_FILE}; one of them has more")
    if _NESTED_REPEAT.search(carrier.match):
        refuse("the pattern repeats something that is itself repeated, which can take forever; write it without that")
    try:
        # Line by line anchors: a configuration file is a list of lines.
        expression = re.compile(carrier.match, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        refuse(f"the pattern is no regular expression: {error}")
    if "value" not in expression.groupindex:
        refuse("the pattern has no named group `value`: write the part to change as (?P<value>...)")
    found = [match for match in expression.finditer(text) if match["value"] is not None]
    if not found:
        refuse(f"the pattern {carrier.match!r} matches nothing in the file")
    if len(found) > 1:
        lines = ", ".join(str(line_of(text, match.start("value"))) for match in found[:10])
        refuse(f"the pattern matches {len(found)} times (lines {lines}); it has to match exactly once")
    return found[0]
