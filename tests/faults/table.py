"""The table of a matrix: what became of the cells, by fault and by lifecycle state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.faults.worlds import Result

WORDS = ("restored", "kept", "unknown", "half", "no trace", "broken")


def table(results: Sequence[Result]) -> str:
    """Markdown: one row per fault, one per lifecycle state, then every cell that is not sound with its reasons."""
    lines = [f"{len(results)} cells, {sum(result.sound for result in results)} sound", ""]
    lines += _rows("fault", ((f"{one.cell.place}: {one.cell.fault}", one.word) for one in results))
    lines += ["", *_rows("lifecycle state", ((one.cell.point.state, one.word) for one in results))]
    failed = [one for one in results if not one.sound]
    if failed:
        lines += ["", "Not sound:", ""]
    lines += [f"- {one.cell.name}: {one.word}; {_why(one)}" for one in failed]
    return "\n".join(lines) + "\n"


def _rows(title: str, found: Iterable[tuple[str, str]]) -> list[str]:
    counted: dict[str, Counter[str]] = {}
    for name, word in found:
        counted.setdefault(name, Counter())[word] += 1
    total = sum(counted.values(), Counter[str]())
    rows = [f"| {title} | cells | {' | '.join(WORDS)} |", f"|---|{'---:|' * (len(WORDS) + 1)}"]
    for name, words in [*counted.items(), ("all", total)]:
        rows.append(f"| {name} | {words.total()} | {' | '.join(str(words[word]) for word in WORDS)} |")
    return rows


def _why(result: Result) -> str:
    """The reasons of both judgements, or what broke."""
    told = result.told
    if "error" in told:
        return str(told["error"]).strip().splitlines()[-1]
    said = [
        f"{when}: {told[key][0]} ({'; '.join(told[key][1])})"
        for when, key in (("first", "first"), ("at last", "second"))
    ]
    return f"exit {told['exit']}; {'; '.join([*said, *told['notes']])}"
