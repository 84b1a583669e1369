"""A workload: the fixed requests of a service's measurements, one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from changectl.core.digest import sha256
from changectl.core.errors import InputError, Problem
from changectl.core.grammar import nearest

MAXIMUM_BYTES = 256 << 20
MAXIMUM_PROBLEMS = 20  # a file of the wrong kind has one problem per line; nobody reads thousands
_KEYS = ("expect", "id", "max_tokens", "messages", "prompt", "quality")
_EXAMPLE = '{"id": "weather-1", "prompt": "Describe rain.", "max_tokens": 64}'


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a workload file, in its order.

    Each entry has `id`, `prompt` or `messages`, `max_tokens`, and maybe `expect` ("empty") and `quality` (true: it is
    also sent unsalted and its answer is kept for comparison).
    """

    file: str
    digest: str  # SHA-256 of the file's bytes
    content: bytes = field(repr=False)
    entries: Sequence[Mapping[str, Any]] = field(repr=False)


def load(content: bytes, file: str) -> Workload:
    """Read a workload.

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
        entry, found = _entry(line, file, number)
        problems += found
        if entry is not None:
            entries.append(entry)
            problems += _repeated(entry, lines, file, number)
    if not entries and not problems:
        problems.append(Problem("the workload has no requests", file, 1, 1, hint=f"write one per line: {_EXAMPLE}"))
    if problems:
        raise InputError(problems)
    return Workload(file, sha256(content), content, tuple(entries))


def _repeated(entry: Mapping[str, Any], lines: dict[str, int], file: str, number: int) -> list[Problem]:
    if not isinstance(entry.get("id"), str):
        return []  # said already: it has no id
    first = lines.setdefault(entry["id"], number)
    if first == number:
        return []
    message = f"the id `{entry.get('id')}` stands here a second time"
    return [Problem(message, file, number, 1, "id", f"the first is in line {first}; every request has its own")]


def _entry(line: bytes, file: str, number: int) -> tuple[Mapping[str, Any] | None, list[Problem]]:
    try:
        entry = json.loads(line.decode("utf-8"), object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        hint = f"one JSON object per line, like {_EXAMPLE}"
        return None, [Problem(f"not readable as JSON: {error.msg}", file, number, error.colno, hint=hint)]
    except UnicodeDecodeError as error:
        return None, [Problem("not UTF-8 text", file, number, error.start + 1, hint="save the file as UTF-8")]
    except _RepeatedKeyError as error:
        return None, [Problem(f"`{error}` stands twice in this line", file, number, 1, hint="each key once")]
    except (ValueError, RecursionError):
        return None, [Problem("not readable as JSON", file, number, 1, hint=f"write it like {_EXAMPLE}")]
    if not isinstance(entry, dict):
        return None, [Problem("a JSON object belongs here", file, number, 1, hint=f"write it like {_EXAMPLE}")]
    found = [*_about_keys(entry), *_about_text(entry), *_about_rest(entry)]
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


_Found = list[tuple[str, str, str]]  # key, message, hint


def _about_keys(entry: Mapping[str, Any]) -> _Found:
    found = [(key, f"unknown key `{key}`", nearest(key, _KEYS)) for key in entry if key not in _KEYS]
    if not isinstance(entry.get("id"), str) or not entry["id"]:
        found.append(("id", "`id` has to be a text", 'write for example `"id": "weather-1"`'))
    return found


def _about_text(entry: Mapping[str, Any]) -> _Found:
    if ("prompt" in entry) == ("messages" in entry):
        return [("prompt", "exactly one of `prompt` and `messages` belongs here", f"write it like {_EXAMPLE}")]
    if "prompt" in entry:
        good = isinstance(entry["prompt"], str) and bool(entry["prompt"])
        return [] if good else [("prompt", "`prompt` has to be a text", f"write it like {_EXAMPLE}")]
    messages = entry["messages"]
    if isinstance(messages, list) and messages and all(_is_message(message) for message in messages):
        return []
    return [("messages", "`messages` has to be a list of roles and texts", '[{"role": "user", "content": "..."}]')]


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and set(message) == {"role", "content"}
        and all(isinstance(text, str) and text for text in message.values())
    )


def _about_rest(entry: Mapping[str, Any]) -> _Found:
    found = []
    limit = entry.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 1_000_000:
        found.append(("max_tokens", "`max_tokens` has to be a whole number above zero", 'write `"max_tokens": 64`'))
    if entry.get("expect", "empty") != "empty":
        found.append(("expect", "`expect` can only be `empty`", "leave it out unless an empty answer is right"))
    if not isinstance(entry.get("quality", False), bool):
        found.append(("quality", "`quality` is true or false", "leave it out when it is false"))
    return found
