"""Commands inside of sentences, set apart so that they can be copied.

A message that names a command to run ends the line with it, after a colon: `Settle it first: changectl recover RUN`.
"""

from __future__ import annotations

import re

from changectl.reports._blocks import Block, Command, Line, Tone

_PROGRAMS = "changectl|python3|systemctl|systemd-run|restorecon|install|rm|kill|ssh|ssh-keygen|ssh-keyscan"
_AT_THE_END = re.compile(rf"(?P<purpose>.*\S): (?P<command>(?:{_PROGRAMS}) \S.*)")


def told(text: str, tone: Tone = "plain", mark: str = "") -> list[Block]:
    """The lines of a message, each command in it as a block of its own.

    Args:
        text: one or more lines.
        tone: of all of them.
        mark: stands before every line, for example "- ".
    """
    blocks: list[Block] = []
    for line in text.splitlines():
        found = _AT_THE_END.fullmatch(line)
        if found:
            blocks.append(Command(found["command"], mark + found["purpose"], tone))
        else:
            blocks.append(Line(mark + line, tone))
    return blocks


def apart(text: str) -> str:
    """A message with every command in it on a line of its own, a little further in than its purpose."""
    return "\n".join(map(_apart, text.split("\n")))


def _apart(line: str) -> str:
    found = _AT_THE_END.fullmatch(line)
    if not found:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return f"{found['purpose']}:\n{indent}{found['command']}"
