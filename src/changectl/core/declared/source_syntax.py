"""What is wrong with a text that is no YAML: the parser's place, and in our words what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from changectl.core.errors import Problem

_QUOTES = (
    "values with `: ` or `#` need quotes around them, and so do those that begin with "
    "`>`, `|`, `{`, `[`, `*`, `&`, `!`, `%`, `@`, a backtick or a quote"
)
_LIMIT = re.compile(r":\s+(>[^,}#]*)")  # a value that begins like a limit
_DASHES = re.compile(r"\s*(?:- +)*")
_ONLY_A_KEY = re.compile(r"\s*(?:- +)*[^\s:]+")


def unreadable_character(text: str, file: str, error: ReaderError) -> Problem:
    """A control character in the text."""
    position = error.position if isinstance(error.position, int) else 0
    before = text[:position]
    column = len(before) - (before.rfind("\n") + 1) + 1
    hint = "remove the control character, or write it as an escape inside double quotes"
    return Problem("a character that YAML does not allow", file, before.count("\n") + 1, column, hint=hint)


def syntax_problem(text: str, file: str, error: MarkedYAMLError) -> Problem:
    """What the parser stumbled over."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    lines = text.splitlines()
    content = lines[line - 1] if line <= len(lines) else ""
    what = one_line(error.problem or error.context or error)
    if "block scalar" in str(error.context) or "character '>'" in what:
        limit = _LIMIT.search(content)
        if limit:
            hint = f'write "{limit[1].strip()}" in quotes'
            return Problem("a value that begins with `>` needs quotes", file, line, limit.start(1) + 1, hint=hint)
    message, hint = _in_words(what, lines, content, line, column)
    return Problem(message, file, line, column, hint=hint)


def _in_words(what: str, lines: Sequence[str], content: str, line: int, column: int) -> tuple[str, str]:
    """What is wrong, and what to write instead."""
    if "another document" in what:
        return "a second document begins here", "one file holds one plan or one service"
    if "\t" in content[: column + 1]:
        return "a tab stands in the indentation", "indent with spaces; YAML forbids tabs"
    if what.startswith("expected <block end>") or (
        what.startswith("mapping values") and _ONLY_A_KEY.fullmatch(content[: column - 1])
    ):
        return _indentation(lines, line) or (f"not readable as YAML: {what}", _QUOTES)
    return f"not readable as YAML: {what}", _QUOTES


def _indentation(lines: Sequence[str], line: int) -> tuple[str, str] | None:
    """How the line is indented, and where the line above it begins; None: there is nothing above, or it fits that."""
    text = lines[line - 1] if line <= len(lines) else ""
    own, item = _spaces(text), text.lstrip().startswith("- ")
    above = [number for number in range(line - 1, 0, -1) if _holds_something(lines[number - 1], item=item)]
    if not above:
        return None
    last = lines[above[0] - 1]
    column = _spaces(last) + 1 if item else len(_DASHES.match(last)[0]) + 1  # type: ignore[index]  # matches anything
    if own + 1 == column:
        return None
    spaces = f"{own} space{'' if own == 1 else 's'}"
    what = "the `-` above it" if item else "what stands above it"
    message = f"line {line} is indented by {spaces}; {what} (line {above[0]}) begins in column {column}"
    return message, "let all keys of one step or block begin in the same column, and all its `-` in one, too"


def _holds_something(line: str, *, item: bool) -> bool:
    """Whether it is no empty line and no comment; of an `item`: whether it begins one."""
    content = line.strip()
    return bool(content) and not content.startswith("#") and (content.startswith("- ") or not item)


def _spaces(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def one_line(value: object) -> str:
    """A parser's words on one line, shortened."""
    return " ".join(str(value).split())[:200]
