"""Requests found in a log or a data set: what one JSON object of it says, as a line of a workload."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.declared import tensors
from changectl.core.redaction.patterns import secret_spans
from changectl.core.workload.entry import problems
from changectl.core.workload.lengths import BYTES_A_TOKEN, lengths

UNKNOWN_LENGTH = 256  # tokens, where neither the request nor an answer says how long it may get
# Under which names proxies and engines log the body of a request.
_BODIES = ("request_body", "requestBody", "req_body", "body", "request", "params")
_USERS, _MODELS = ("human", "user"), ("gpt", "assistant", "chatgpt", "model")
_PROTOCOLS = {"embeddings": "openai_embeddings", "kserve": "kserve_v2"}  # of a kind; the others make text
# A byte that is no UTF-8, as `text_of` leaves it; one of NUL is none of a text either, and a packed file has many.
_BYTES = re.compile("[\udc80-\udcff\0]")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens", "n_predict")

NO_JSON = "no JSON object"
NO_REQUEST = "no request of this kind"
NOT_TEXT = "content that is not text (images, tools)"
NOT_UTF8 = "bytes that are no UTF-8 text"
SECRET = "what looks like a secret"  # noqa: S105  (a reason, in words)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One request found in the source; `entry` lacks nothing but its id."""

    place: int  # the line, or the number in a list, from 1
    entry: Mapping[str, Any]
    size: tuple[int, int]  # how long its input and its output are, to sort by
    limit: str  # where `max_tokens` came from: "said", "answered" or "assumed"; "" where it has none


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A place of the source that gave no request, and why."""

    place: int
    why: str


def text_of(data: bytes) -> str:
    """A file as text; bytes that are no UTF-8 stay apart from all that it may say, so that their lines are left out."""
    return data.decode("utf-8", "surrogateescape")


def objects(text: str) -> Iterator[tuple[int, Any]]:
    """Everything in a file that may be a request: members of a JSON list, or the object in each line.

    A line may begin with other text, as logs have it: time, address, level. What has no object gives None, and what is
    no text `NOT_UTF8`.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("[") and not _BYTES.search(stripped):
        try:
            members = json.loads(stripped)
        except (ValueError, RecursionError):
            members = None
        if isinstance(members, list):
            yield from enumerate(members, start=1)
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, NOT_UTF8 if _BYTES.search(line) else _in_line(line)


def _in_line(line: str) -> Any:
    start = line.find("{")
    try:
        return json.JSONDecoder().raw_decode(line, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        return None


def candidates(text: str, kind: str) -> Iterator[Candidate | LeftOut]:
    """Each object of a source, as a request of that kind or as the reason why it is none."""
    for place, found in objects(text):
        if found == NOT_UTF8:
            yield LeftOut(place, NOT_UTF8)
            continue
        if not isinstance(found, dict):
            yield LeftOut(place, NO_JSON)
            continue
        try:
            entry, limit = _entry(_request(found), found, kind)
        except _NotTextError:
            yield LeftOut(place, NOT_TEXT)
            continue
        if entry is None:
            yield LeftOut(place, NO_REQUEST)
        elif found_wrong := problems({"id": "x", **entry}, _PROTOCOLS.get(kind)):
            yield LeftOut(place, found_wrong[0][1])
        elif _looks_secret(entry):
            yield LeftOut(place, SECRET)
        else:
            yield Candidate(place, entry, _size(entry), limit)


class _NotTextError(Exception):
    """A message holds something other than text."""


def _request(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body of a logged request, or the object itself; some logs hold the body as text."""
    for key in _BODIES:
        body = found.get(key)
        if isinstance(body, str):
            body = _in_line(body)
        if isinstance(body, dict):
            return _request(body)
    return found


def _entry(request: Mapping[str, Any], whole: Mapping[str, Any], kind: str) -> tuple[dict[str, Any] | None, str]:
    if kind == "kserve":
        inputs = request.get("inputs")
        good = isinstance(inputs, list) and inputs and not any(map(tensors.problem, inputs))
        return ({"inputs": inputs} if good else None), ""
    if kind == "embeddings":
        text = request.get("input") or request.get("text") or request.get("prompt")
        return ({"prompt": text} if isinstance(text, str) else None), ""
    content = _conversation(request) or _messages(request) or _prompt(request)
    if content is None:
        return None, ""
    answer = content.pop("answer", None)
    limit, source = _limit(request, whole, answer)
    return {**content, "max_tokens": limit}, source


def _conversation(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """A data set's conversation, what the model said left out: `conversations` with `from` and `value`, or `turns`."""
    if isinstance(request.get("turns"), list) and all(isinstance(turn, str) and turn for turn in request["turns"]):
        return _turns(request["turns"], [request["system"]] if isinstance(request.get("system"), str) else [], None)
    rows = request.get("conversations") or request.get("conversation")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    said = [(str(row.get("from") or row.get("role")), row.get("value") or row.get("content")) for row in rows]
    if any(not isinstance(text, str) for _, text in said):
        raise _NotTextError
    users = [text for who, text in said if who in _USERS]
    answers = [text for who, text in said if who in _MODELS]
    system = [text for who, text in said if who == "system"]
    return _turns(users, system, max(answers, key=len, default=None))


def _turns(users: list[Any], system: list[Any], answer: Any) -> dict[str, Any] | None:
    if not users:
        return None
    if len(users) > 1:
        return {**({"system": system[0]} if system else {}), "turns": users, "answer": answer}
    if not system:
        return {"prompt": users[0], "answer": answer}
    messages = [{"role": "system", "content": system[0]}, {"role": "user", "content": users[0]}]
    return {"messages": messages, "answer": answer}


def _messages(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The messages of a chat request, up to the last one that is not the model's."""
    rows = request.get("messages")
    if not isinstance(rows, list) or not rows:
        return None
    messages = [_message(row) for row in rows]
    answer = messages.pop()["content"] if messages[-1]["role"] == "assistant" else None
    return {"messages": messages, "answer": answer} if messages else None


def _message(row: Any) -> dict[str, str]:
    content = row.get("content") if isinstance(row, dict) else None
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        content = "\n".join(str(part.get("text") or "") for part in content)
    if not isinstance(content, str) or not content or not isinstance(row.get("role"), str) or not row["role"]:
        raise _NotTextError
    return {"role": row["role"], "content": content}


def _prompt(request: Mapping[str, Any]) -> dict[str, Any] | None:
    text = request.get("prompt") or request.get("instruction") or request.get("question")
    if not isinstance(text, str) or not text:
        return None
    if isinstance(request.get("input"), str) and request["input"]:
        text = f"{text}\n\n{request['input']}"
    answers = (request.get(key) for key in ("output", "completion", "response", "answer"))
    return {"prompt": text, "answer": next((answer for answer in answers if isinstance(answer, str) and answer), None)}


def _limit(request: Mapping[str, Any], whole: Mapping[str, Any], answer: str | None) -> tuple[int, str]:
    """How long the answer may get, and where that comes from."""
    for key in _LIMITS:
        if _is_count(request.get(key)):
            return int(request[key]), "said"
    for holder in (whole, whole.get("response"), whole.get("response_body")):
        usage = holder.get("usage") if isinstance(holder, dict) else None
        if isinstance(usage, dict) and _is_count(usage.get("completion_tokens")):
            return int(usage["completion_tokens"]), "answered"
    if answer:
        return min(1_000_000, max(1, len(answer.encode("utf-8", "replace")) // BYTES_A_TOKEN)), "answered"
    return UNKNOWN_LENGTH, "assumed"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000


def _looks_secret(entry: Mapping[str, Any]) -> bool:
    """Whether some text of it holds what is secret by its name or shape: a token, a password, a private key."""
    text = "\n".join(_strings(entry))
    return any(spans for spans in secret_spans(text))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from _strings(member)


def _size(entry: Mapping[str, Any]) -> tuple[int, int]:
    own = lengths([entry])
    if own:
        return sum(length.characters for length in own), entry.get("max_tokens") or 0
    return len(json.dumps(entry)), 0
