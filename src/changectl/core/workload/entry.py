"""One line of a workload: what may stand in it, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from changectl.core.declared import tensors
from changectl.core.declared.grammar import nearest

EXAMPLE = '{"id": "weather-1", "prompt": "Describe rain.", "max_tokens": 64}'
_TURNS = '{"id": "c", "turns": ["What is rain?", "And hail?"], "max_tokens": 64}'
_TEXT = ("expect", "id", "max_tokens", "messages", "prompt", "quality", "system", "turns")
# Protocol -> the keys that have a meaning there, and a whole line; any other protocol makes text.
_OTHERS = {
    "openai_embeddings": (("id", "prompt"), '{"id": "weather-1", "prompt": "Rain from the west."}'),
    "kserve_v2": (("id", "inputs"), f'{{"id": "row-1", "inputs": [{tensors.EXAMPLE}]}}'),
}
_EVERY = tuple(sorted({*_TEXT, "inputs"}))
_CONTENT = ("prompt", "messages", "turns", "inputs")

Found = list[tuple[str, str, str]]  # key, message, hint


def example(protocol: str | None) -> str:
    """A line as it is written for a protocol."""
    return _OTHERS[protocol][1] if protocol in _OTHERS else EXAMPLE


def problems(entry: Mapping[str, Any], protocol: str | None) -> Found:
    """What is wrong with a line: key, message, what to write instead.

    Args:
        entry: the line's object.
        protocol: the one it will be sent by; None: not known, so that any will do.
    """
    found = _about_keys(entry, protocol)
    if not isinstance(entry.get("id"), str) or not entry["id"]:
        found.append(("id", "`id` has to be a text", 'write for example `"id": "weather-1"`'))
    found += _about_content(entry, protocol)
    return [*found, *_about_rest(entry)] if protocol not in _OTHERS and "inputs" not in entry else found


def names(entry: Mapping[str, Any]) -> list[str]:
    """What its requests are called in records: of a conversation one for each turn."""
    turns = entry.get("turns")
    if not isinstance(turns, list):
        return [str(entry.get("id"))]
    return [f"{entry.get('id')}#{number}" for number in range(1, len(turns) + 1)]


def _about_keys(entry: Mapping[str, Any], protocol: str | None) -> Found:
    keys = _EVERY if protocol is None else _OTHERS[protocol][0] if protocol in _OTHERS else _TEXT
    found: Found = []
    for key in entry:
        if key in keys:
            continue
        if key in _EVERY:
            found.append((key, f"`{key}` has no meaning for `{protocol}`", f"write it like {example(protocol)}"))
        else:
            found.append((key, f"unknown key `{key}`", nearest(key, keys)))
    return found


def _about_content(entry: Mapping[str, Any], protocol: str | None) -> Found:
    allowed = tuple(key for key in _CONTENT if protocol not in _OTHERS or key in _OTHERS[str(protocol)][0])
    if protocol is not None and protocol not in _OTHERS:
        allowed = tuple(key for key in allowed if key != "inputs")
    given = [key for key in allowed if key in entry]
    if len(given) != 1:
        named = " and ".join(f"`{key}`" for key in allowed) if len(allowed) == 1 else _listed(allowed)
        return [(allowed[0], f"exactly one of {named} belongs here" if len(allowed) > 1 else f"{named} belongs here",
                 f"write it like {example(protocol)}")]  # fmt: skip
    check = {"prompt": _prompt, "messages": _messages, "turns": _turns, "inputs": _inputs}[given[0]]
    return check(entry[given[0]]) + _about_system(entry)


def _listed(keys: tuple[str, ...]) -> str:
    return f"{', '.join(f'`{key}`' for key in keys[:-1])} and `{keys[-1]}`"


def _prompt(text: Any) -> Found:
    good = isinstance(text, str) and bool(text)
    return [] if good else [("prompt", "`prompt` has to be a text", f"write it like {EXAMPLE}")]


def _messages(messages: Any) -> Found:
    if isinstance(messages, list) and messages and all(_is_message(message) for message in messages):
        return []
    return [("messages", "`messages` has to be a list of roles and texts", '[{"role": "user", "content": "..."}]')]


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and set(message) == {"role", "content"}
        and all(isinstance(text, str) and text for text in message.values())
    )


def _turns(turns: Any) -> Found:
    if isinstance(turns, list) and len(turns) > 1 and all(isinstance(turn, str) and turn for turn in turns):
        return []
    return [("turns", "`turns` has to be a list of two texts or more, each of the user", f"write it like {_TURNS}")]


def _inputs(inputs: Any) -> Found:
    if not isinstance(inputs, list) or not inputs:
        return [("inputs", "`inputs` has to be a list of tensors", f"write it like {_OTHERS['kserve_v2'][1]}")]
    wrong = [(number, text) for number, tensor in enumerate(inputs, start=1) if (text := tensors.problem(tensor))]
    return [("inputs", f"tensor {number}: {text}", f"write it like {tensors.EXAMPLE}") for number, text in wrong]


def _about_system(entry: Mapping[str, Any]) -> Found:
    if "system" not in entry:
        return []
    if "turns" not in entry:
        hint = 'write it as the first of the `messages`: {"role": "system", "content": "..."}'
        return [("system", "`system` only stands beside `turns`", hint)]
    good = isinstance(entry["system"], str) and bool(entry["system"])
    return [] if good else [("system", "`system` has to be a text", "leave it out, or say what the model is to be")]


def _about_rest(entry: Mapping[str, Any]) -> Found:
    found: Found = []
    limit = entry.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 1_000_000:
        found.append(("max_tokens", "`max_tokens` has to be a whole number above zero", 'write `"max_tokens": 64`'))
    if not _is_expectation(entry.get("expect", "empty")):
        hint = 'write `"expect": {"contains": "Paris"}`, or `"expect": "empty"` where an empty answer is right'
        found.append(("expect", "`expect` is `empty`, or says what the answer contains", hint))
    if not isinstance(entry.get("quality", False), bool):
        found.append(("quality", "`quality` is true or false", "leave it out when it is false"))
    return found


def _is_expectation(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"contains"} and isinstance(value["contains"], str) and bool(value["contains"].strip())
    return bool(value == "empty")
