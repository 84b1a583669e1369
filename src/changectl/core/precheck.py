"""Pre-checks: what a check is told, what it answers, and when the answers refuse a change. Nothing is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from changectl.core.caller import CallerSeen
from changectl.core.declared.live_load import LiveLoad
from changectl.core.engine import Engine, Pages
from changectl.core.leaving import Leaving
from changectl.core.manager import Manager
from changectl.core.observed import Capture, Hello, Help, HostFacts, Model, Nvml, Observed, Status, UnitVerify
from changectl.core.settings import Setting, Value
from changectl.core.trial.power import Power

Level = Literal["required", "advice"]
CheckState = Literal["passed", "failed", "unknown", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A value as seen in one place: known (perhaps absent), or not known and why."""

    value: Value = None
    known: bool = True
    why: str = ""  # why it is not known: "not exposed", "not reachable", ...

    def __str__(self) -> str:
        if not self.known:
            return f"not known ({self.why})" if self.why else "not known"
        return "absent" if self.value is None else repr(self.value)


NOT_EXPOSED = Seen(known=False, why="not exposed")


@dataclass(frozen=True, slots=True)
class ThreeValues:
    """One setting in the file, in the running process and in the engine."""

    name: str
    file: Seen
    process: Seen
    engine: Seen
    setting: Setting | None = None  # None: a plain environment variable


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything known about one instance before a change. None always means "not known", never "fine"."""

    service: str = ""
    endpoint: str | None = None
    expected_model: str | None = None  # the name under which the service file says the model answers
    model_path: str | None = None  # where the service file says it lies
    engine: Engine | None = None
    manager: Manager | None = None
    preview: bool = False  # nothing may be changed on the host, so nothing was captured
    # the change
    name: str = ""  # as the plan names it
    setting: Setting | None = None  # None: a plain environment variable
    to: Value = None
    edited_files: Sequence[str] = ()  # paths that the change writes
    writes_nothing: bool = False  # it is measured as it is: `edited_files` names what was looked at
    read_by_engine: Sequence[str] = ()  # configuration files whose values show in no argument and no variable
    values: Sequence[ThreeValues] | None = None  # the changed setting, and all others found in the same carriers
    settings_before: Mapping[str, str] | None = None  # effective values by setting name, as they are
    settings_after: Mapping[str, str] | None = None  # and as they would be
    starts_needed: int | None = None
    bytes_needed: int | None = None  # what the run itself writes on the host
    quality_prompts: int | None = None  # requests of the workload whose answers are compared; None: nothing is measured
    workload: Sequence[Mapping[str, Any]] | None = None  # what will be sent; None: nothing is measured
    # the host
    hello: Hello | None = None
    host: HostFacts | None = None
    observed: Observed | None = None
    status: Status | None = None
    status_earlier: Status | None = None  # some seconds before `status`
    pages: Pages | None = None
    log: Sequence[str] = ()
    nvml: Nvml | None = None
    help: Help | None = None
    unit_verify: UnitVerify | None = None
    capture: Capture | None = None
    drain: float | None = None  # seconds that the service file says running requests need to end before a stop
    state_path: str = "/var/lib/changectl"  # where the run's folder lies on the host
    caller: CallerSeen | None = None
    leaving: Leaving | None = None
    live: LiveLoad | None = None
    power: Power | None = None  # what the effort can decide
    # the model
    model_declared: bool = True
    model: Model | None = None
    model_kept: Model | None = None  # the manifest of an earlier run
    model_excluded: Sequence[str] = field(default=())  # declared configuration files in the model folder


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found: the state, the measured figure, and what to do."""

    name: str
    level: Level
    state: CheckState
    figure: str = ""  # measured, for example "3.1 GB needed, 40 GB free"
    detail: str = ""  # one sentence
    hint: str = ""  # what to do about it
    because: str = ""  # the failed check that is the reason why this one could not be looked at
    reason: str = ""  # the stable word for why it failed, where the check has several of its own

    @property
    def refuses(self) -> bool:
        """Whether this alone forbids the change: failed or unknown, where it is required."""
        return self.level == "required" and self.state in {"failed", "unknown"}


@dataclass(frozen=True, slots=True)
class Check:
    """Name and level of a check, and its four possible answers."""

    name: str
    level: Level
    reads_process: bool = False  # whether it looks at the running process, so that it can tell nothing without one

    def passed(self, detail: str, figure: str = "") -> CheckResult:
        """It was looked at and is in order."""
        return CheckResult(self.name, self.level, "passed", figure, detail)

    def failed(self, detail: str, hint: str = "", figure: str = "") -> CheckResult:
        """It was looked at and is not in order."""
        return CheckResult(self.name, self.level, "failed", figure, detail, hint)

    def unknown(self, detail: str, hint: str = "", figure: str = "") -> CheckResult:
        """It could not be looked at."""
        return CheckResult(self.name, self.level, "unknown", figure, detail, hint)

    def not_applicable(self, detail: str, figure: str = "") -> CheckResult:
        """There is nothing of the kind here."""
        return CheckResult(self.name, self.level, "not_applicable", figure, detail)


def refuses(results: Iterable[CheckResult]) -> list[CheckResult]:
    """The results that forbid the change; empty: it may go on."""
    return [result for result in results if result.refuses]


def reason(results: Iterable[CheckResult]) -> str:
    """The stable word for why a change is refused: the first one's own where all have one, else `precheck_failed`."""
    own = [result.reason for result in refuses(results) if not result.because]
    return own[0] if own and all(own) else "precheck_failed"


FOLLOWING = "not checked because of that, so not passed either"


def root_causes(results: Sequence[CheckResult]) -> list[tuple[CheckResult, list[str]]]:
    """The checks that refuse by themselves, each with those that could not be looked at because of it; these first."""
    refusing = refuses(results)
    found = [
        (own, [other.name for other in refusing if other.because == own.name]) for own in refusing if not own.because
    ]
    return sorted(found, key=lambda pair: not pair[1])


def refusal(results: Sequence[CheckResult]) -> list[str]:
    """Why the change is refused, one sentence each: what others follow from first, then what could not be looked at."""
    lines = []
    for result, following in root_causes(results):
        lines.append(f"{result.name}: {'; '.join(part for part in (result.detail, result.hint) if part)}")
        lines += [f"{FOLLOWING}: {', '.join(following)}"] if following else []
    return lines


def format_bytes(count: float) -> str:
    """Bytes for people, in decimal units: 3.1 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
