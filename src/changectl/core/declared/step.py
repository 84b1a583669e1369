"""A step of a plan: exactly one change, what it is expected to do, what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from changectl.core.declared.change import ChangeSpec
from changectl.core.declared.fields import Duration, ProjectPath, text_of
from changectl.core.declared.grammar import Fault, Grammar, as_fault, fault, faults, nearest
from changectl.core.declared.metric_fields import EXPECT_HINT, NEUTRAL, ExpectField, Guards
from changectl.core.units import format_duration

SHORTEST_WATCH, LONGEST_WATCH = 10.0, 86_400.0  # seconds; apply waits all the time

_ONE_CHANGE = "one step changes one thing: give each its own step"


class Change(BaseModel):
    """The one change of a step: its kind and what that kind's grammar made of it."""

    model_config = ConfigDict(frozen=True)

    kind: str
    spec: SerializeAsAny[ChangeSpec]

    def describe(self) -> str:
        """The change in a few words, for example `parameter max-num-seqs: absent -> 128`."""
        return self.spec.describe()


def _read_change(value: Any, info: ValidationInfo) -> Change:
    kinds: Mapping[str, type[ChangeSpec]] = (info.context or {}).get("kinds", {})
    if isinstance(value, Change):
        return value
    if isinstance(value, list) and len(value) > 1:
        raise fault(f"{len(value)} changes in one step", _ONE_CHANGE)
    if not isinstance(value, dict) or not value:
        raise fault(
            "a kind of change and its settings belong here", "write `change: {parameter: {name: ..., to: ...}}`"
        )
    if len(value) > 1:
        named = " and ".join(f"`{kind}`" for kind in value)
        raise fault(f"more than one change in this step: {named}", _ONE_CHANGE)
    kind, settings = next(iter(value.items()))
    if kind not in kinds:
        raise faults([Fault(f"unknown kind of change `{kind}`", nearest(kind, kinds), (kind,), key=True)])
    try:
        return Change(kind=kind, spec=kinds[kind].model_validate(settings, context=info.context))
    except ValidationError as error:
        found = (as_fault(details) for details in error.errors())
        raise faults(complaint._replace(at=(kind, *complaint.at)) for complaint in found) from None


def _read_check(value: Any) -> str:
    text = text_of(value)
    if not text.endswith(".py"):
        raise fault(f"`{text}` is not a testinfra file", "name a Python file with tests, like `checks/answers.py`")
    return text


ChangeField = Annotated[Change, PlainValidator(_read_change), WithJsonSchema({"type": "object"})]


def _long_enough(seconds: float | None) -> float | None:
    if seconds is not None and not SHORTEST_WATCH <= seconds <= LONGEST_WATCH:
        raise fault(
            f"a watch of {format_duration(seconds)}",
            f"write between {format_duration(SHORTEST_WATCH)} and {format_duration(LONGEST_WATCH)}, like `watch: 30m`",
        )
    return seconds


WatchField = Annotated[Duration | None, AfterValidator(_long_enough)]
CheckFile = Annotated[ProjectPath, BeforeValidator(_read_check)]


class Step(Grammar):
    """Exactly one change, what it is expected to do, what it may cost, and what happens when nobody can tell."""

    missing_hints: ClassVar[Mapping[str, str]] = {
        "expect": EXPECT_HINT,
        "change": "write `change: {parameter: {name: max-num-seqs, to: 128}}`",
    }

    change: ChangeField = Field(description="exactly one kind of change with its settings")
    expect: ExpectField = Field(description="the gain per metric, or `neutral`")
    accept: Guards = Field((), description="limits that replace the default ones: the trade that is declared")
    checks: tuple[CheckFile, ...] = Field((), description="testinfra files that have to pass on every host")
    on_inconclusive: Literal["revert", "ask", "keep"] = Field(
        "revert", description="what to do when the evidence does not suffice; `keep` only with `expect: neutral`"
    )
    watch: WatchField = Field(
        None, description="how long the change is watched live before it is kept", examples=["30m"]
    )

    @model_validator(mode="after")
    def _keep_only_what_promises_nothing(self) -> Self:
        if self.on_inconclusive == "keep" and not self.expect.neutral:
            message = "`keep` would keep a gain that nobody saw"
            raise faults([Fault(message, f"write `revert` or `ask`, or `expect: {NEUTRAL}`", ("on_inconclusive",))])
        return self
