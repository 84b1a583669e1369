"""A workload told: how long its requests are, and of one drawn from a file what was taken and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.counting import counted
from changectl.core.workload.lengths import lengths, quantile
from changectl.core.workload.source import SECRET, Candidate, LeftOut
from changectl.reports._blocks import Block, Heading, Line, Table, Tone
from changectl.reports._runs import FORMAT

_SHARES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (1.0, "most"))
_PLACES_TOLD = 8
Entries = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What came of a source: every request found in it, those taken, and what gave none."""

    found: Sequence[Candidate]
    taken: Sequence[Candidate]
    left_out: Sequence[LeftOut]
    seed: int


def figures(entries: Entries) -> dict[str, dict[str, float]]:
    """Lengths by percentiles: characters and about how many tokens go in, and how many may come out at most."""
    own = lengths(entries)
    columns = {
        "input_characters": [one.characters for one in own],
        "input_tokens_about": [one.tokens for one in own],
        "max_tokens": [one.max_tokens for one in own if one.max_tokens is not None],
    }
    return {
        name: {label: quantile([float(value) for value in values], share) for share, label in _SHARES}
        for name, values in columns.items()
        if values
    }


def as_json(entries: Entries, file: str | None, drawn: Drawn | None = None) -> dict[str, Any]:
    """The document of `changectl workload ... --json`."""
    counts, spread = _counts(entries), figures(entries)
    document: dict[str, Any] = {"format": FORMAT, "exit_code": 0, "file": file, **counts, "lengths": spread}
    if drawn is not None:
        document |= {
            "seed": drawn.seed,
            "found": len(drawn.found),
            "max_tokens_from": dict(sorted(Counter(one.limit for one in drawn.taken if one.limit).items())),
            "left_out": _left_out(drawn),
        }
    return document


def _counts(entries: Entries) -> dict[str, int]:
    talks = [entry for entry in entries if "turns" in entry]
    turns = sum(len(entry["turns"]) for entry in talks)
    return {"lines": len(entries), "conversations": len(talks), "requests": len(entries) - len(talks) + turns}


def as_blocks(entries: Entries, file: str | None, drawn: Drawn | None = None) -> list[Block]:
    """What it holds, its lengths, and where it comes from."""
    counts = _counts(entries)
    holds = f"{counted(counts['lines'], 'line')}, {counted(counts['requests'], 'request')} a round"
    if counts["conversations"]:
        holds += f", {counted(counts['conversations'], 'conversation')} among them"
    blocks: list[Block] = [Heading(f"{file or 'the workload'}: {holds}", 2), *_table(entries)]
    return [*blocks, *_origin(drawn, file)] if drawn is not None else blocks


def _table(entries: Entries) -> list[Block]:
    rows = [[name.replace("_", " "), *map("{:g}".format, row.values())] for name, row in figures(entries).items()]
    headings = ("length of a request", *(label for _, label in _SHARES))
    return [Table(headings, rows)] if rows else [Line("how long tensors are, only their model can say", "quiet")]


def _origin(drawn: Drawn, file: str | None) -> list[Block]:
    blocks: list[Block] = []
    if len(drawn.taken) < len(drawn.found):
        text = f"taken: {len(drawn.taken)} of {counted(len(drawn.found), 'request')}, spread over all lengths"
        blocks.append(Line(f"{text}, by seed {drawn.seed}"))
    else:
        blocks.append(Line(f"taken: all {counted(len(drawn.found), 'request')} that were found"))
    for source, words in (("answered", "as long as their answers were"), ("assumed", "assumed, for nothing says it")):
        number = sum(one.limit == source for one in drawn.taken)
        blocks += [Line(f"max_tokens of {counted(number, 'request')}: {words}")] if number else []
    for why, places in _left_out(drawn).items():
        named = ", ".join(map(str, places[:_PLACES_TOLD])) + (", ..." if len(places) > _PLACES_TOLD else "")
        tone: Tone = "warning" if why == SECRET else "plain"
        blocks.append(Line(f"left out: {len(places)}, {why} (line or place {named})", tone))
    if drawn.taken:
        text = "these are texts of users, which may be personal or secret in ways that no pattern finds"
        text += ": read them before you share them"
        text += "; only you can read the new file" if file else ""
        blocks.append(Line(text, "warning"))
    return blocks


def _left_out(drawn: Drawn) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in drawn.left_out:
        found.setdefault(one.why, []).append(one.place)
    return dict(sorted(found.items()))
