"""What `changectl plan` tells: the difference, the three values, the impact, every pre-check with its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.precheck import FOLLOWING, CheckResult, ThreeValues, root_causes
from changectl.core.units import format_duration
from changectl.reports._blocks import Block, Facts, Heading, Line, Table, Tone, Verbatim
from changectl.reports._commands import told

WAY_BACK = "the saved files, restored and proven; then one start"
_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "unknown": "warning", "not_applicable": "quiet"}


@dataclass(frozen=True, slots=True)
class Impact:
    """What one step costs if it is kept."""

    instances: int  # on which there is something to do; one is changed after the other
    starts: int  # of each of them
    measuring: float | None  # seconds, all instances together; None: its length is a number of requests
    load: float | None  # seconds that one start takes; None: never measured
    traffic: str = ""  # what users notice meanwhile

    @property
    def total(self) -> float | None:
        """Seconds from the first start to the end, the reading before it aside; None: not known."""
        if not self.instances:
            return 0.0
        if self.measuring is None or self.load is None:
            return None
        return self.instances * self.starts * self.load + self.measuring

    def __str__(self) -> str:
        if not self.instances:
            return "0s: there is nothing to do"
        starts = self.instances * self.starts
        if self.total is not None and self.load is not None:
            return f"about {format_duration(self.total)}, and about {format_duration(self.load)} more if it is not kept"
        unknown = [f"the time of {starts} start{'s' if starts > 1 else ''}"] if self.load is None else []
        unknown += ["the time of the measurements"] if self.measuring is None else []
        known = (self.measuring or 0.0) + (0.0 if self.load is None else starts * self.load)
        least = f"at least {format_duration(known)}; " if known else ""
        return f"{least}not known: {' and '.join(unknown)}"


def step_blocks(number: int, change: str, refusal: str, impact: Impact, measured: str) -> list[Block]:
    """The head of one step: the change and its impact; `measured` says how much is sent, at which levels."""
    starts, measuring, load = impact.starts, impact.measuring, impact.load
    blocks: list[Block] = [Heading(f"Step {number}: {change}", 2)]
    if refusal:
        return [*blocks, *told(f"refused: {refusal}", "bad")]
    each = "not measured yet" if load is None else f"about {format_duration(load)} (the last load)"
    length = measured if measuring is None else f"about {format_duration(measuring)} {measured}"
    return [
        *blocks,
        Facts([
            ("starts per instance", f"{starts}, and one more if it is not kept"),
            ("out of service per start", each),
            *([("meanwhile", impact.traffic)] if impact.traffic else []),
            ("measuring", length),
            ("time in all", str(impact)),
            ("way back", WAY_BACK),
        ]),
    ]  # fmt: skip


def instance_blocks(
    name: str, path: str, diff: str, three: ThreeValues, checks: Sequence[CheckResult], nothing_to_do: bool,
    after_steps: Sequence[int] = (),
) -> list[Block]:  # fmt: skip
    """One instance: where the value stands now, what would be written, what the checks say."""
    numbers = " and ".join(str(number) for number in after_steps)
    then = f" (after step{'s' if len(after_steps) > 1 else ''} {numbers})" if after_steps else ""
    blocks: list[Block] = [
        Heading(f"{name}: {path}{then}", 3),
        Facts([("in the file", str(three.file)), ("in the process", str(three.process)),
               ("in the engine", str(three.engine))]),
    ]  # fmt: skip
    blocks.append(Line("nothing to do: the file already says so", "good") if nothing_to_do else Verbatim(diff))
    rows = [(check.name, check.level, check.state.replace("_", " "), check.figure, check.detail) for check in checks]
    blocks.append(Table(("pre-check", "level", "state", "figure", "detail"), rows))
    return [*blocks, *_refusals(checks)]


def _refusals(checks: Sequence[CheckResult]) -> list[Block]:
    """Why it is refused: what others follow from first, each with what to do."""
    blocks: list[Block] = []
    for check, following in root_causes(checks):
        blocks += told(f"{check.name}: {check.detail}", _TONES[check.state])
        blocks += told(f"what to do: {check.hint}", mark="- ") if check.hint else []
        blocks += [Line(f"- {FOLLOWING}: {', '.join(following)}", "warning")] if following else []
    return blocks


def step_json(change: str, refusal: str, impact: Impact, instances: list[dict[str, Any]]) -> dict[str, Any]:
    """One step for machines."""
    return {
        "change": change,
        "refusal": refusal,
        "starts": impact.starts,
        "measuring_seconds": impact.measuring,
        "load_seconds": impact.load,
        "traffic": impact.traffic,
        "total_seconds": None if refusal else impact.total,
        "instances": instances,
    }


def instance_json(
    name: str, path: str, diff: str, three: ThreeValues, checks: Sequence[CheckResult], nothing_to_do: bool,
    after_steps: Sequence[int] = (),
) -> dict[str, Any]:  # fmt: skip
    """The same for machines."""
    return {
        "instance": name,
        "path": path,
        "diff": diff,
        "nothing_to_do": nothing_to_do,
        "after_steps": list(after_steps),
        "values": {"file": str(three.file), "process": str(three.process), "engine": str(three.engine)},
        "checks": [
            {"name": check.name, "level": check.level, "state": check.state, "figure": check.figure,
             "detail": check.detail, "hint": check.hint, "refuses": check.refuses}
            for check in checks
        ],
    }  # fmt: skip
