"""A prefix that makes every prompt new to the server, so that no cache of an earlier phase answers for it.

Words and not random characters: common words of four letters are one token each to most tokenizers, so that salted
prompts have the same length in bytes, and as nearly as can be in tokens, in every phase.
"""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Mapping

_WORDS = [
    "area",
    "back",
    "ball",
    "base",
    "bird",
    "blue",
    "boat",
    "body",
    "book",
    "call",
    "card",
    "case",
    "city",
    "cold",
    "dark",
    "data",
    "deal",
    "door",
    "east",
    "face",
    "fact",
    "farm",
    "fire",
    "fish",
    "food",
    "foot",
    "form",
    "game",
    "girl",
    "gold",
    "good",
    "half",
    "hand",
    "hard",
    "head",
    "help",
    "high",
    "home",
    "hope",
    "hour",
    "idea",
    "king",
    "lake",
    "land",
    "life",
    "line",
    "list",
    "long",
    "love",
    "main",
    "mind",
    "moon",
    "name",
    "news",
    "note",
    "open",
    "page",
    "park",
    "part",
    "past",
    "plan",
    "rain",
    "read",
    "road",
]  # 64 words: six bits each
_COUNT = 10


def salt(phase: str, level: str, round_number: int, prompt: str) -> str:
    """The prefix of one prompt in one round of one level of one phase; always of the same length."""
    digest = hashlib.sha256("\0".join((phase, level, str(round_number), prompt)).encode("utf-8")).digest()
    return " ".join(_WORDS[byte & 63] for byte in digest[:_COUNT]) + ": "


def salted(content: Mapping[str, Any], prefix: str) -> Dict[str, Any]:
    """The prompt, or the first message that has text, with the prefix in front; tensors as they are."""
    if "prompt" in content:
        return {"prompt": prefix + content["prompt"]}
    if "messages" not in content:
        return dict(content)
    messages: List[Any] = list(content["messages"])
    for position, message in enumerate(messages):
        text = message.get("content") if isinstance(message, dict) else None
        if isinstance(text, str):
            messages[position] = dict(message, content=prefix + text)
            break
    return {"messages": messages}
