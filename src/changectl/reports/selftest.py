"""Whether measuring sees: what came of `changectl selftest`, or what the record has of the last one."""

from __future__ import annotations

from typing import Any

from changectl.core.history.events import mapping_of, mappings_of, number_of, text_of
from changectl.core.history.selftests import InstanceProof, SelfTestRun
from changectl.core.trial.seeing import ADVICE
from changectl.core.units import format_duration
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Command, Facts, Heading, Line
from changectl.reports._runs import FORMAT

SEES, BLIND, CUT_OFF, NEVER = "sees", "blind", "cut_off", "never"
_INSTANCE = {SEES: "measuring sees", BLIND: "measuring is BLIND", CUT_OFF: "it was cut off: that proves nothing"}


def reason(found: SelfTestRun | None) -> str:
    """A stable word for all of it."""
    if found is None:
        return NEVER
    states = [state(one) for one in found.instances]
    return next((word for word in (BLIND, CUT_OFF) if word in states), SEES)


def state(one: InstanceProof) -> str:
    """The same for one instance."""
    return CUT_OFF if not one.ended else SEES if one.sees else BLIND


def exit_code(found: SelfTestRun | None) -> int:
    """0 it sees; 3: it does not, or nobody knows."""
    return 0 if reason(found) == SEES else 3


def as_json(service: str, found: SelfTestRun | None) -> dict[str, Any]:
    """The document of `changectl selftest SERVICE --json`."""
    return {
        "format": FORMAT,
        "service": service,
        "reason": reason(found),
        "run": None if found is None else found.run,
        "at": None if found is None else found.at,
        "actor": None if found is None else found.actor,
        "instances": [] if found is None else [_instance_json(one) for one in found.instances],
    }


def _instance_json(one: InstanceProof) -> dict[str, Any]:
    reasons = [{"code": text_of(each, "code"), "text": text_of(each, "text")} for each in _reasons(one)]
    return {
        "host": one.host,
        "state": state(one),
        "metric": text_of(one.body, "metric"),
        "delay": number_of(one.body, "delay"),
        "found": number_of(one.body, "found"),
        "reasons": reasons,
        "undelayed": text_of(mapping_of(one.body, "undelayed"), "verdict") or None,
        "delayed": text_of(mapping_of(one.body, "delayed"), "verdict") or None,
    }


def _reasons(one: InstanceProof) -> list[Any]:
    return list(mappings_of(one.body, "reasons"))


def as_blocks(service: str, found: SelfTestRun | None) -> list[Block]:
    """What people read."""
    if found is None:
        text = f"the record has no selftest of service {service}: whether measuring it sees was never proven"
        return [Line(text, "warning"), Command(f"changectl selftest {service}", "prove it")]
    blocks: list[Block] = [Heading(f"selftest {found.run}, {words.moment(found.at)}, by {found.actor}")]
    for one in found.instances:
        blocks += _instance(one)
    return blocks


def _instance(one: InstanceProof) -> list[Block]:
    word = state(one)
    blocks: list[Block] = [Line(f"{one.host}: {_INSTANCE[word]}", "good" if word == SEES else "bad")]
    if pairs := _facts(one):
        blocks.append(Facts(pairs))
    reasons = _reasons(one)
    blocks += [Line(f"- {text_of(each, 'text')}") for each in reasons]
    advice = dict.fromkeys(ADVICE.get(text_of(each, "code"), "") for each in reasons)
    blocks += [Line(f"what to do: {text}") for text in advice if text]
    if word == CUT_OFF and (message := text_of(one.body, "message")):
        blocks.append(Line(f"- {message}"))
    return blocks


def _facts(one: InstanceProof) -> list[tuple[str, str]]:
    delay, moved = number_of(one.body, "delay"), number_of(one.body, "found")
    if not delay:
        return []
    metric = text_of(one.body, "metric")
    seen = words.UNKNOWN if moved is None else format_duration(moved, 3)
    verdicts = [text_of(mapping_of(one.body, side), "verdict") or words.UNKNOWN for side in ("delayed", "undelayed")]
    return [
        ("delay put in", format_duration(delay)),
        (f"{metric} moved by", f"{seen} (medians)"),
        ("the delay was judged", verdicts[0]),
        ("no delay was judged", verdicts[1]),
    ]
