"""Command lines in service files: split like a shell splits them, run without one."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from changectl.core.declared.fields import text_of
from changectl.core.declared.grammar import fault

_BLOCK = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_SHELL_WORDS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def split_command(text: str) -> list[str]:
    """The words of a command line; a template stays within its word, so that what it gives is never split.

    Raises:
        ValueError: a quote is not closed.
    """
    blocks: list[str] = []

    def hide(match: re.Match[str]) -> str:
        blocks.append(match.group(0))
        return f"\ue000{len(blocks) - 1}\ue001"  # private-use characters, which no quoting rule touches

    words = shlex.split(_BLOCK.sub(hide, text))
    return [re.sub("\ue000(\\d+)\ue001", lambda match: blocks[int(match.group(1))], word) for word in words]


def _argv(value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple):
        words = [text_of(item) for item in value]
    else:
        try:
            words = split_command(text_of(value))
        except ValueError:
            raise fault("a quote is not closed", "close it, or write the command as a list of words") from None
    if not words or not words[0]:
        raise fault("no command is named here", 'write for example `start: "./run-chat start"`')
    for word in words:
        if word in _SHELL_WORDS or word.startswith(("$(", "`")):
            raise fault(
                f"`{word}` is a shell's word, and no shell runs this command", "put it into a script and name that"
            )
        if "\x00" in word or "\n" in word:
            raise fault("a word of the command holds a line break or control character", "write it in one line")
    if _ASSIGNMENT.match(words[0]):
        raise fault("the command begins with an assignment", f"write `env {words[0]} ...`")
    return tuple(words)


_SCHEMA = {
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "examples": ["./run-chat start"],
}
Argv = Annotated[tuple[str, ...], PlainValidator(_argv), WithJsonSchema(_SCHEMA)]
