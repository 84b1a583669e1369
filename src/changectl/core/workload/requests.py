"""A workload: the fixed requests of a service's measurements, one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from changectl.core.digest import sha256
from changectl.core.errors import InputError, Problem
from changectl.core.workload.entry import example, names
from changectl.core.workload.entry import problems as problems_of

MAXIMUM_BYTES = 256 << 20
MAXIMUM_PROBLEMS = 20  # a file of the wrong kind has one problem per line; nobody reads thousands


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a workload file, in its order.

    Each entry has `id`; one of `prompt`, `messages`, `turns` (a conversation, with `system` maybe) and `inputs`; where
    text is made, `max_tokens`, and maybe `expect` and `quality` (true: it is sent unsalted and its answer is kept).
    """

    file: str
    digest: str  # SHA-256 of the file's bytes
    content: bytes = field(repr=False)
    entries: Sequence[Mapping[str, Any]] = field(repr=False)


def load(content: bytes, file: str, protocol: str | None = None) -> Workload:
    """Read a workload.

    Args:
        content: the file's bytes.
        file: its name for messages.
        protocol: the one by which the requests will be sent; None: not known.

    Raises:
        InputError: with the problems of all lines (the first ones of very many).
    """
    if len(content) > MAXIMUM_BYTES:
        raise InputError(Problem(f"the workload is larger than {MAXIMUM_BYTES} bytes", file))
    entries: list[Mapping[str, Any]] = []
    problems: list[Problem] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip() or len(problems) >= MAXIMUM_PROBLEMS:
            continue
        entry, found = _entry(line, file, number, protocol)
        problems += found
        if entry is not None:
            entries.append(entry)
            problems += _repeated(entry, lines, file, number)
    if not entries and not problems:
        hint = f"write one per line: {example(protocol)}"
        problems.append(Problem("the workload has no requests", file, 1, 1, hint=hint))
    if problems:
        raise InputError(problems)
    return Workload(file, sha256(content), content, tuple(entries))


def _repeated(entry: Mapping[str, Any], lines: dict[str, int], file: str, number: int) -> list[Problem]:
    if not isinstance(entry.get("id"), str):
        return []  # said already: it has no id
    for name in names(entry):
        first = lines.setdefault(name, number)
        if first != number:
            message = f"the id `{name}` stands here a second time"
            return [Problem(message, file, number, 1, "id", f"the first is in line {first}; every request has its own")]
    return []


def _entry(line: bytes, file: str, number: int, protocol: str | None) -> tuple[Mapping[str, Any] | None, list[Problem]]:
    like = example(protocol)
    try:
        entry = json.loads(line.decode("utf-8"), object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        hint = f"one JSON object per line, like {like}"
        return None, [Problem(f"not readable as JSON: {error.msg}", file, number, error.colno, hint=hint)]
    except UnicodeDecodeError as error:
        return None, [Problem("not UTF-8 text", file, number, error.start + 1, hint="save the file as UTF-8")]
    except _RepeatedKeyError as error:
        return None, [Problem(f"`{error}` stands twice in this line", file, number, 1, hint="each key once")]
    except (ValueError, RecursionError):
        return None, [Problem("not readable as JSON", file, number, 1, hint=f"write it like {like}")]
    if not isinstance(entry, dict):
        return None, [Problem("a JSON object belongs here", file, number, 1, hint=f"write it like {like}")]
    found = problems_of(entry, protocol)
    return entry, [Problem(message, file, number, 1, key, hint) for key, message, hint in found]


class _RepeatedKeyError(Exception):
    """A JSON object has a key twice."""


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise _RepeatedKeyError(key)
        entry[key] = value
    return entry
