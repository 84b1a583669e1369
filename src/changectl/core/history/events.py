"""The journal's vocabulary: the kinds of events and what their bodies hold (docs/reference/journal.md).

Side effects come in pairs: `X.intent` before, `X.outcome` after; an outcome says `ok`, else `reason` and `message` too.
Readers take bodies as they are: what an older or newer program left out is unknown, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, TypedDict

RUN_OPENED: Final = "run.opened"
RUN_CLOSED: Final = "run.closed"
LOCK_TAKEN_OVER: Final = "lock.taken_over"
LOCK_BROKEN: Final = "lock.broken"
STEP_STARTED: Final = "step.started"
STEP_CLOSED: Final = "step.closed"
CONTACT: Final = "contact"
PRECHECK: Final = "precheck"
EDIT: Final = "edit"
TURN: Final = "turn"
VERDICT: Final = "verdict"
SELFTEST: Final = "selftest"  # whether measuring sees: a pair of its own, in a run that changes nothing
CALIBRATION: Final = "calibration"  # what a calibration found out on one instance; also the kind of its step
MARK: Final = "mark"  # what an operator made of a verdict later; recorded after the run has ended

# The side effects that are announced by an intent, and the facts that are recorded as an outcome alone.
CAPTURE: Final = "capture"
WRITE: Final = "write"
RESTART: Final = "restart"
MEASURE: Final = "measure"
RESTORE: Final = "restore"
REVERT: Final = "revert"
LEASE: Final = "lease"
ARM: Final = "arm"
READY: Final = "ready"
EFFECTIVE: Final = "effective"
CHECKS: Final = "checks"
VERIFY: Final = "verify"
EVIDENCE: Final = "evidence"
DISARM: Final = "disarm"
WATCH: Final = "watch"
OBSERVE: Final = "observe"
DRAIN: Final = "drain"  # an instance out of service
UNDRAIN: Final = "undrain"  # and back

INTENT: Final = ".intent"
OUTCOME: Final = ".outcome"

# All that a list of runs needs; everything else of a run is read only for its story.
SUMMARY_KINDS: Final = (
    RUN_OPENED, STEP_STARTED, CONTACT, VERDICT, WATCH + OUTCOME, STEP_CLOSED, RUN_CLOSED, DRAIN + INTENT,
    UNDRAIN + OUTCOME,
)  # fmt: skip

Outcome = Literal[
    "kept", "kept_unjudged", "kept_partly", "reverted", "revert_unverified", "revert_failed", "refused", "aborted"
]
OUTCOMES: Final[tuple[Outcome, ...]] = (
    "kept",
    "kept_unjudged",
    "kept_partly",
    "reverted",
    "revert_unverified",
    "revert_failed",
    "refused",
    "aborted",
)


def intent(action: str) -> str:
    """The kind of the event before a side effect: `write.intent`."""
    return action + INTENT


def outcome(action: str) -> str:
    """The kind of the event after it: `write.outcome`."""
    return action + OUTCOME


# "from" is a word of Python's own, hence the other way of writing this one.
ChangeBody = TypedDict("ChangeBody", {"kind": str, "name": str, "from": NotRequired[str | None], "to": str | None})


class StepBody(TypedDict):
    """One step of `run.opened`."""

    change: ChangeBody
    summary: str  # the change in the plan's own words
    expect: Any
    accept: Any


class RunOpened(TypedDict):
    """Body of `run.opened`: who, why, what, where, by which plan and program."""

    plan: str
    plan_digest: str
    plan_text: str
    service: str
    reason: str
    ticket: str | None
    actor: str
    hosts: list[str]
    tool_version: str
    steps: list[StepBody]
    reverts: NotRequired[str]  # the run that this one takes back
    extends: NotRequired[str]  # the run whose trial this one goes on with
    covers: dict[str, str]  # what the plan's digest covers: each part with its own digest
    incident: NotRequired[str]  # why nothing was to be measured
    calibration: NotRequired[Mapping[str, Any]]  # nothing is changed, only measured: {pairs, seconds}, each or null


class RunClosed(TypedDict):
    """Body of `run.closed`."""

    exit_code: int
    outcome: Outcome


class Edit(TypedDict):
    """Body of `edit`: what changes in one file. `diff` is redacted before it gets here."""

    host: str
    path: str
    before_sha: str | None  # None: the file is absent
    after_sha: str | None
    diff: str


class StepClosed(TypedDict):
    """Body of `step.closed`."""

    outcome: Outcome
    verdict: str | None
    outage_seconds: float | None  # how long the service did not answer because of this step; None: not known
    reason: str  # a stable word
    text: str  # the same for people
    instances: NotRequired[Mapping[str, str]]  # by instance: its outcome, `untouched` or `nothing_to_do`


def text_of(body: Mapping[str, Any], name: str) -> str:
    """A text of a body; "" when it is missing or something else."""
    value = body.get(name)
    return value if isinstance(value, str) else ""


def number_of(body: Mapping[str, Any], name: str) -> float | None:
    """A number of a body; None when it is missing or something else."""
    value = body.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def items_of(body: Mapping[str, Any], name: str) -> list[Any]:
    """A list of a body; empty when it is missing or something else."""
    value = body.get(name)
    return value if isinstance(value, list) else []


def mapping_of(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping of a body; empty when it is missing or something else."""
    value = body.get(name)
    return value if isinstance(value, Mapping) else {}


def mappings_of(body: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The mappings in a list of a body."""
    return [item for item in items_of(body, name) if isinstance(item, Mapping)]


def texts_of(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The texts in a list of a body."""
    return tuple(item for item in items_of(body, name) if isinstance(item, str))
