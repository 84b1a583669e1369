"""Two runs side by side: gate by gate whether they may be compared, and the verdict where all of them hold."""

from __future__ import annotations

from typing import Any

from changectl.core.replaying.comparing import Comparison, Gate, Side
from changectl.reports import _verdict as verdict
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Line
from changectl.reports._commands import told
from changectl.reports._flags import remarks
from changectl.reports._runs import FORMAT

EXIT_APART = 3
_CONFIGURATIONS = {"A": "the saved configuration", "B": "the changed configuration"}
_SHOWN = 3  # reasons of one gate: a gate that fails in every phase does so for the same cause


def exit_code(comparison: Comparison) -> int:
    """0: they may be compared, whatever the verdict; 3: a gate fails."""
    return 0 if comparison.comparable else EXIT_APART


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The document of `changectl compare RUN RUN --json`."""
    return {"format": FORMAT, **comparison.to_json()}


def as_blocks(comparison: Comparison) -> list[Block]:
    """What people read."""
    before, after = comparison.before, comparison.after
    blocks: list[Block] = [
        Heading(f"{before} and {after}"),
        Facts([("before", _side(before)), ("after", _side(after))]),
        Heading("gates", 2),
    ]
    for gate in comparison.gates:
        blocks += _gate(gate)
    judgement = comparison.judgement
    if judgement is None:
        return [*blocks, Heading("no verdict", 2), *told("what is not measured alike cannot be told apart", "warning")]
    document = judgement.to_json()
    said = judgement.verdict.value
    blocks += [Heading("verdict", 2), Line(said, words.tone(said))]
    blocks += [Line(text, "warning") for text in remarks(document["flags"])]
    return [*blocks, *verdict.reasons(document["reasons"], document["rows"]), *verdict.table(document["rows"])]


def _side(side: Side) -> str:
    numbers = ", ".join(str(phase.number) for phase in side.phases)
    phases = "phase" if len(side.phases) == 1 else "phases"
    return f"{side}: {_CONFIGURATIONS[side.letter]} of {side.service} on {side.host}, {phases} {numbers}"


def _gate(gate: Gate) -> list[Block]:
    if gate.holds:
        return [Line(f"- {gate.name}: holds", "good")]
    left = len(gate.reasons) - _SHOWN
    more: list[Block] = [Line(f"  and {left} more: --json lists them", "quiet")] if left > 0 else []
    lines = [Line(f"  {reason.text}") for reason in gate.reasons[:_SHOWN]]
    return [Line(f"- {gate.name}: fails", "bad"), *lines, *more]
