"""What `changectl plan` tells: the difference, the three values, the impact, every pre-check with its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.cost import Span, StartCost
from changectl.core.precheck import FOLLOWING, CheckResult, ThreeValues, root_causes
from changectl.core.units import format_duration
from changectl.reports._blocks import Block, Facts, Heading, Line, Tone, Verbatim
from changectl.reports._commands import told
from changectl.reports._prechecks import prechecks

WAY_BACK = "the saved files, restored and proven; then one start"
_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "unknown": "warning", "not_applicable": "quiet"}


@dataclass(frozen=True, slots=True)
class Impact:
    """What one step costs if it is kept."""

    instances: int  # on which there is something to do; one is changed after the other
    starts: int  # of each of them
    measuring: Span | None  # seconds, all instances together; None: a number of requests that was never timed
    start: StartCost | None  # of one start; None: never recorded
    traffic: str = ""  # what users notice meanwhile
    watch: float = 0.0  # seconds that each instance is watched live before it is kept
    all_starts: int | None = None  # of all instances together; None: each has as many
    order: str = ""  # who gets which check, in order; "": there is one instance

    @property
    def count(self) -> int:
        """Starts of all instances together."""
        return self.instances * self.starts if self.all_starts is None else self.all_starts

    @property
    def total(self) -> Span | None:
        """Seconds from the first start to the end, the reading before it aside; None: not known."""
        if not self.instances:
            return Span(0.0, 0.0)
        if self.measuring is None or self.start is None:
            return None
        watch = Span(self.watch, self.watch).times(self.instances)
        return self.start.out.times(self.count) + self.measuring + watch

    def __str__(self) -> str:
        if not self.instances:
            return "0s: there is nothing to do"
        count = self.count
        starts = f"{count} start{'s' if count > 1 else ''}"
        if self.start is None:
            known = "" if self.measuring is None else f"; the measurements take {self.measuring}"
            unknown = " and of the measurements" if self.measuring is None else ""
            return f"not known: no run has recorded the time of a start{unknown} yet{known}"
        back = f"{self.start.back} more if it is not kept"
        if self.total is None:
            return f"not known: the measurements were never timed; {starts}: {self.start.out.times(count)}; {back}"
        return f"{self.total}, and {back}"


def step_blocks(
    number: int, change: str, refusal: str, impact: Impact, measured: str, sight: Sequence[str] = ()
) -> list[Block]:
    """The head of one step: the change and its impact.

    Args:
        number: the step's.
        change: in a few words.
        refusal: why it cannot even be computed; "": it can.
        impact: what it costs.
        measured: how much is sent, at which levels.
        sight: what a trial of several pairs can tell, in sentences.
    """
    starts, measuring, start = impact.starts, impact.measuring, impact.start
    blocks: list[Block] = [Heading(f"Step {number}: {change}", 2)]
    if refusal:
        return [*blocks, *told(f"refused: {refusal}", "bad")]
    each = "not recorded yet" if start is None else f"{start.out}, as lately; the way back {start.back}"
    length = measured if measuring is None else f"{measuring}, {measured}"
    return [
        *blocks,
        Facts([
            *([("order", impact.order)] if impact.order else []),
            ("starts per instance", f"{starts}, and one more if it is not kept"),
            ("out of service per start", each),
            *([("meanwhile", impact.traffic)] if impact.traffic else []),
            ("measuring", length),
            *([("watched live after it", format_duration(impact.watch))] if impact.watch else []),
            ("time in all", str(impact)),
            *(("it can see", sentence) for sentence in sight),
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
    rows = [(check.name, check.level, check.state, check.figure, check.detail) for check in checks]
    return [*blocks, *prechecks("pre-check", rows), *_refusals(checks)]


def _refusals(checks: Sequence[CheckResult]) -> list[Block]:
    """Why it is refused: what others follow from first, each with what to do."""
    blocks: list[Block] = []
    for check, following in root_causes(checks):
        blocks += told(f"{check.name}: {check.detail}", _TONES[check.state])
        blocks += told(f"what to do: {check.hint}", mark="- ") if check.hint else []
        blocks += [Line(f"- {FOLLOWING}: {', '.join(following)}", "warning")] if following else []
    return blocks


def step_json(
    change: str, refusal: str, impact: Impact, instances: list[dict[str, Any]], sight: Sequence[str] = ()
) -> dict[str, Any]:
    """One step for machines."""
    return {
        "change": change,
        "refusal": refusal,
        "can_see": list(sight),
        "starts": impact.starts,
        "measuring_seconds": _longest(impact.measuring),
        "watch_seconds": impact.watch or None,
        "load_seconds": _longest(impact.start.out if impact.start else None),
        "traffic": impact.traffic,
        "total_seconds": None if refusal else _longest(impact.total),
        "instances": instances,
    }


def _longest(span: Span | None) -> float | None:
    """For machines: what to reckon with."""
    return None if span is None else round(span.most, 3)


def instance_json(
    name: str, path: str, diff: str, three: ThreeValues, checks: Sequence[CheckResult], nothing_to_do: bool,
    after_steps: Sequence[int] = (), look: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The same for machines."""
    return {
        "instance": name,
        "path": path,
        "diff": diff,
        "nothing_to_do": nothing_to_do,
        "after_steps": list(after_steps),
        "look": look,
        "values": {"file": str(three.file), "process": str(three.process), "engine": str(three.engine)},
        "checks": [
            {"name": check.name, "level": check.level, "state": check.state, "figure": check.figure,
             "detail": check.detail, "hint": check.hint, "refuses": check.refuses}
            for check in checks
        ],
    }  # fmt: skip
