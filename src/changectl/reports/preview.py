"""What `changectl plan` tells: the difference, the three values, the impact, every pre-check with its figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from changectl.core.precheck import CheckResult, ThreeValues
from changectl.core.units import format_duration
from changectl.reports._blocks import Block, Facts, Heading, Line, Table, Tone, Verbatim

WAY_BACK = "the saved files, restored and proven; then one start"
_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "unknown": "warning", "not_applicable": "quiet"}


def step_blocks(
    number: int, change: str, refusal: str, starts: int, measuring: float | None, load: float | None, measured: str
) -> list[Block]:
    """The head of one step: the change and its impact; `measured` says how much is sent, at which levels."""
    blocks: list[Block] = [Heading(f"Step {number}: {change}", 2)]
    if refusal:
        return [*blocks, Line(f"refused: {refusal}", "bad")]
    each = "not measured yet" if load is None else f"about {format_duration(load)} (the last load)"
    length = measured if measuring is None else f"about {format_duration(measuring)} {measured}"
    return [
        *blocks,
        Facts([
            ("starts per instance", f"{starts}, and one more if it is not kept"),
            ("out of service per start", each),
            ("measuring", length),
            ("way back", WAY_BACK),
        ]),
    ]  # fmt: skip


def instance_blocks(
    name: str, path: str, diff: str, three: ThreeValues, checks: Sequence[CheckResult], nothing_to_do: bool
) -> list[Block]:
    """One instance: where the value stands, what would be written, what the checks say."""
    blocks: list[Block] = [
        Heading(f"{name}: {path}", 3),
        Facts([("in the file", str(three.file)), ("in the process", str(three.process)),
               ("in the engine", str(three.engine))]),
    ]  # fmt: skip
    blocks.append(Line("nothing to do: the file already says so", "good") if nothing_to_do else Verbatim(diff))
    rows = [(check.name, check.level, check.state.replace("_", " "), check.figure, check.detail) for check in checks]
    blocks.append(Table(("pre-check", "level", "state", "figure", "detail"), rows))
    blocks += [Line(f"{check.name}: {check.detail} {check.hint}".rstrip(), _TONES[check.state])
               for check in checks if check.refuses]  # fmt: skip
    return blocks


def step_json(
    change: str, refusal: str, starts: int, measuring: float | None, load: float | None, instances: list[dict[str, Any]]
) -> dict[str, Any]:
    """One step for machines."""
    return {
        "change": change,
        "refusal": refusal,
        "starts": starts,
        "measuring_seconds": measuring,
        "load_seconds": load,
        "instances": instances,
    }


def instance_json(
    name: str, path: str, diff: str, three: ThreeValues, checks: Sequence[CheckResult], nothing_to_do: bool
) -> dict[str, Any]:
    """The same for machines."""
    return {
        "instance": name,
        "path": path,
        "diff": diff,
        "nothing_to_do": nothing_to_do,
        "values": {"file": str(three.file), "process": str(three.process), "engine": str(three.engine)},
        "checks": [
            {"name": check.name, "level": check.level, "state": check.state, "figure": check.figure,
             "detail": check.detail, "hint": check.hint, "refuses": check.refuses}
            for check in checks
        ],
    }  # fmt: skip
