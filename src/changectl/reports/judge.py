"""Verdicts computed once more from their raw records: whether they are the same, and what other limits would say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from changectl.core.counting import counted
from changectl.core.history.events import text_of
from changectl.core.history.reading import RunSummary
from changectl.core.judging.judgement import Judgement
from changectl.core.replaying.replay import Replayed
from changectl.reports import _verdict as verdict
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Line
from changectl.reports._runs import FORMAT

DIFFERS = "differs"  # the exit code's reason where a figure is not as recorded
EXIT_DIFFERS = 3
_SAME = "the same as recorded"


def exit_code(found: Sequence[Replayed]) -> int:
    """0: every verdict is as recorded; 3: one is not."""
    return EXIT_DIFFERS if any(one.differs for one in found) else 0


def as_json(run: str, found: Sequence[Replayed], policy: str | None) -> dict[str, Any]:
    """The document of `changectl judge RUN --json`."""
    return {
        "format": FORMAT,
        "run": run,
        "policy": policy,
        "verdicts": [_verdict_json(one) for one in found],
        "reason": DIFFERS if exit_code(found) else "same",
    }


def _verdict_json(one: Replayed) -> dict[str, Any]:
    return {
        "step": one.trial.step,
        "host": one.trial.host,
        "recorded": text_of(one.trial.verdict, "verdict"),
        "same": one.differs is None,
        "differs": None if one.differs is None else asdict(one.differs),
        "not_on_record": list(one.not_on_record),
        "phases": len(one.trial.phases),
        "requests": _requests(one),
        "judgement": one.judgement.to_json(),
        "under_policy": None if one.instead is None else one.instead.to_json(),
    }


def as_blocks(run: RunSummary, found: Sequence[Replayed], policy: str | None, now_with: str) -> list[Block]:
    """What people read.

    Args:
        run: the run.
        found: its verdicts.
        policy: the file with other limits; None: none was given.
        now_with: the version of changectl that computes.
    """
    blocks: list[Block] = []
    for one in found:
        blocks.append(Heading(f"run {run.run}/{one.trial.step} on {one.trial.host}"))
        blocks += _sameness(one, run.tool_version, now_with)
        blocks.append(
            Facts([("from", f"{counted(len(one.trial.phases), 'phase')}, {counted(_requests(one), 'request record')}")])
        )
        if one.instead is None:
            blocks += _whole(one.judgement)
        else:
            blocks += [Heading(f"with the limits of {policy}", 2), *_instead(one, one.instead), *_whole(one.instead)]
    return blocks


def _sameness(one: Replayed, recorded_with: str, now_with: str) -> list[Block]:
    said = text_of(one.trial.verdict, "verdict")
    if one.differs is None:
        return [Line(f"{said}: {_SAME}{_how_far(one.not_on_record)}", "good")]
    now = one.judgement.verdict.value
    text = f"not as recorded: {said}, and now {now}" if now != said else f"{said}, but not from the same figures"
    version = "" if recorded_with == now_with else f"; it was judged by changectl {recorded_with}, this is {now_with}"
    return [Line(text, "bad"), Line(f"the first figure that differs: {one.differs}{version}", "bad")]


def _how_far(not_on_record: Sequence[str]) -> str:
    if not not_on_record:
        return ", to the last bit"
    are = "is" if len(not_on_record) == 1 else "are"
    return f"; {counted(len(not_on_record), 'figure')} {are} not on record ({', '.join(not_on_record)})"


def _instead(one: Replayed, instead: Judgement) -> list[Block]:
    said, then = one.judgement.verdict.value, instead.verdict.value
    text = f"{then}, too" if then == said else f"{then} instead of {said}"
    blocks: list[Block] = [Line(text, words.tone(then))]
    if instead.decision == "go_on":
        blocks.append(Line("with these limits the trial would not have ended where it did", "warning"))
    return [*blocks, Line("nothing was recorded, and the run is as it was", "quiet")]


def _whole(judgement: Judgement) -> list[Block]:
    document = judgement.to_json()
    return [*verdict.reasons(document["reasons"], document["rows"]), *verdict.table(document["rows"])]


def _requests(one: Replayed) -> int:
    return sum(len(phase.records) for phase in one.trial.phases)
