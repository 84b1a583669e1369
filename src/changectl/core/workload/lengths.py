"""How long a workload's requests are, in characters and about how many tokens, and whether live ones look like that.

Nobody counts tokens without the model's own tokenizer. Four bytes of UTF-8 to a token is the usual rule of thumb, right
within a factor of two for common languages and code; so lengths that differ by less than that factor are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.telemetry.engine_page import Buckets, Reading

BYTES_A_TOKEN = 4
FACTOR = 2.0  # within it, lengths are alike
NO_DIFFERENCE = 32.0  # tokens: below it, the words that salt a prompt and a chat's frame are as long
LEAST_REQUESTS = 100  # that the engine has counted: fewer say nothing of its users
SHARES = ((0.5, "P50"), (0.9, "P90"))


@dataclass(frozen=True, slots=True)
class Length:
    """One request: what goes in, and what may come out at most."""

    characters: int
    tokens: int  # about
    max_tokens: int | None  # None: what is answered is no text


def lengths(entries: Iterable[Mapping[str, Any]]) -> list[Length]:
    """Every request of a workload, a conversation's turns each; of tensors nothing can be said."""
    return [length for entry in entries for length in _of(entry)]


def _of(entry: Mapping[str, Any]) -> Iterator[Length]:
    limit = entry.get("max_tokens")
    before = 0  # tokens of the answers that a turn holds
    said: list[str] = [str(entry["system"])] if "system" in entry else []
    if "turns" not in entry:
        said += _texts(entry)
        if said:
            yield _length(said, 0, limit)
        return
    for turn in entry["turns"]:
        said.append(str(turn))
        yield _length(said, before, limit)
        before += limit or 0


def _texts(entry: Mapping[str, Any]) -> list[str]:
    if "prompt" in entry:
        return [str(entry["prompt"])]
    return [str(message["content"]) for message in entry.get("messages", ())]


def _length(said: Sequence[str], before: int, limit: int | None) -> Length:
    size = sum(len(text.encode("utf-8", "replace")) for text in said)
    return Length(sum(map(len, said)), before + max(1, round(size / BYTES_A_TOKEN)), limit)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def differences(entries: Iterable[Mapping[str, Any]], live: Mapping[str, Reading]) -> list[str]:
    """In what a workload is unlike the engine's own histograms (`input`, `output`); empty: in nothing that shows."""
    own = lengths(entries)
    found = []
    for share, name in SHARES:
        inputs, limits = ([float(one.tokens) for one in own], [one.max_tokens for one in own if one.max_tokens])
        if inputs and "input" in live and (text := _unlike(quantile(inputs, share), live["input"].buckets, share)):
            found.append(f"{name} of the input: about {text}")
        if limits and "output" in live:
            # What comes out is at most the limit: too short can be told, too long cannot.
            text = _unlike(quantile(limits, share), live["output"].buckets, share, longer=False)
            found += [f"{name} of the output: at most {text}"] if text else []
    return found


def _unlike(own: float, buckets: Buckets, share: float, *, longer: bool = True) -> str:
    """Both figures in words, where they are unlike; empty: they are not, or the engine has counted nothing."""
    edges = between(buckets, share)
    if edges is None:
        return ""
    low, high = edges
    shorter = own * FACTOR < low and low - own > NO_DIFFERENCE
    beyond = longer and own > high * FACTOR and own - high > NO_DIFFERENCE
    live = f"above {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"
    return f"{own:g} tokens in the workload, {live} in what the engine has served" if shorter or beyond else ""


def between(buckets: Buckets, share: float) -> tuple[float, float] | None:
    """The edges between which a quantile of a histogram lies; None: it is empty."""
    total = buckets[-1][1] if buckets else 0.0
    low = 0.0
    for edge, count in buckets:
        if total > 0 and count >= share * total:
            return low, edge
        low = edge
    return None
