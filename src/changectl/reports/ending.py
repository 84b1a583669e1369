"""How a run ended, on one screen for 3 a.m.: what came of it, why, what to type next. The rest is in `show`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from changectl.core.history import RunStory, StepStory
from changectl.core.history_events import text_of
from changectl.core.history_runs import UNPROVEN
from changectl.core.ports import Json
from changectl.reports import _figures as figures
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Line, Table

MOST_ROWS = 12  # figures that a screen has room for
MOST_REASONS = 5
_ORDER = ("breach", "no data", "not measurable", "unequal work", "not judged", "not defined", "within")
_MEANING = {
    "kept": "the change is in force",
    "kept_unjudged": "the change is in force, and nobody has judged it",
    "reverted": "the saved configuration runs again, and that is proven",
    "revert_unverified": "A PERSON IS NEEDED: the saved configuration came back, but that is not proven",
    "revert_failed": "A PERSON IS NEEDED: the saved configuration could not be brought back",
    "refused": "nothing was changed",
    "aborted": "it ended before anything was changed",
}
_IN_PLACE = ("the configuration already says so", "the saved configuration is in place already")  # of apply, of revert
_ON_HOST = "python3 /var/lib/changectl/runs/{folder}/program.pyz"
_ELSEWHERE = "`verify` instead of `restore` compares; a service with a state_dir has its runs/ there"


def as_blocks(story: RunStory, exit_code: int) -> list[Block]:
    """The outcome first and last, the next command below it; for each step why, and the figures that decided."""
    outcome = _outcome(story, exit_code)
    blocks: list[Block] = [outcome]
    if story.run.reverts:
        blocks += [*map(Line, story.text.splitlines()), *_failed_proofs(story.verify)]
    for step in story.steps:
        if step.summary.started_at is not None:
            blocks += _step(step)
    return [*blocks, Line(""), outcome, Facts(_next(story))]


def _outcome(story: RunStory, exit_code: int) -> Line:
    run = story.run
    about = f"revert of run {run.reverts}" if run.reverts else f"run {run.run}"
    text = _MEANING.get(run.outcome, "its end is not recorded")
    if run.did_nothing:
        text = "nothing had to be done: " + _IN_PLACE[run.reverts is not None]
    if run.outcome == "kept_unjudged" and run.reverts:
        text = "what stands on the hosts was accepted as it is; nothing was changed"
    if run.outcome == "reverted" and run.incident:
        text = "the saved configuration is back, and that is proven; below stands whether the service answers"
    return Line(f"{run.outcome}: {text} ({about}, exit code {exit_code})", words.tone(run.outcome))


def _next(story: RunStory) -> list[tuple[str, str]]:
    """What to type next; the names of commands are whole, to be copied."""
    run = story.run
    pairs = [("the whole story", f"changectl show {run.run}")]
    if run.outcome in ("revert_unverified", "revert_failed"):
        pairs += _way_on(story)
    elif any(step.summary.changed_something for step in story.steps):
        pairs.append(("take it back", f"changectl revert {run.run}"))
    elif run.outcome in ("refused", "aborted") and not run.reverts:
        pairs.append(("look again", f"changectl plan {run.plan}"))
    return pairs


def _way_on(story: RunStory) -> list[tuple[str, str]]:
    """What a person can do where the old state is not back, or not proven."""
    run = story.run
    unproven = [step.summary.number for step in story.steps if step.summary.outcome in UNPROVEN]
    folder = f"{run.to_revert}.{unproven[-1] if unproven else 'STEP'}"
    return [
        ("once the cause is mended", f"changectl revert {run.to_revert}"),
        ("or accept what is there", f"changectl revert {run.to_revert} --accept-present --reason TEXT"),
        ("or by hand, on the host", f"{_ON_HOST.format(folder=folder)} restore, then start the service; {_ELSEWHERE}"),
    ]


def _step(step: StepStory) -> list[Block]:
    summary = step.summary
    verdict = f", verdict {summary.verdict}" if summary.verdict else ""
    end = f"{summary.outcome}{verdict}"
    blocks: list[Block] = [
        Heading(f"step {summary.number}: {summary.change}", 2),
        Line(end, words.tone(summary.outcome)),
        *_reasons(step),
        *(Line(text_of(flag, "text"), "warning") for flag in step.flags),
        *_figures(step.rows),
        *_failed_checks(step),
        *_failed_proofs(step.verify),
    ]
    pairs = [*words.promised(step.expect, step.accept), ("checks", _passed(step))]
    pairs += [("outage", words.seconds(summary.outage_seconds))] if summary.outage_seconds is not None else []
    return [*blocks, Facts([(name, value) for name, value in pairs if value])]


def _reasons(step: StepStory) -> list[Block]:
    """Why it ended so: the verdict's reasons, or what ended it before there was one."""
    decided = step.summary.verdict is not None and step.reasons
    texts = figures.reasons(step.reasons, step.rows) if decided else []
    if not decided or (step.summary.outcome not in ("kept", "reverted") and step.summary.text):
        texts += figures.unsaid(step.summary.text, step.reasons) or [step.summary.reason]
    lines: list[Block] = [Line(f"- {text}") for text in texts[:MOST_REASONS] if text]
    left = len(texts) - MOST_REASONS
    return [*lines, Line(f"- and {left} more", "quiet")] if left > 0 else lines


def _figures(rows: Sequence[Json]) -> list[Block]:
    """The figures that decided, the worst first; what there is no room for is counted."""
    if not rows:
        return []
    ordered = sorted(rows, key=_rank)
    shown = ordered[:MOST_ROWS]
    several = len({text_of(row, "host") for row in rows}) > 1
    headings = ("figure", "before", "after", "change", "result")
    table = Table(
        ("host", *headings) if several else headings,
        [[*([text_of(row, "host")] if several else []), *_cells(row)] for row in shown],
    )
    left = len(ordered) - len(shown)
    return [table, Line(f"and {left} more figures, in the whole story", "quiet")] if left else [table]


def _rank(row: Mapping[str, Any]) -> int:
    state = text_of(row, "state")
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)


def _cells(row: Json) -> list[str]:
    return [
        words.place(row),
        words.figure(row, "before"),
        words.figure(row, "after"),
        words.change(row),
        figures.result(row, brief=True),
    ]


def _failed_checks(step: StepStory) -> list[Block]:
    """The pre-checks that did not pass, and the plan's own tests that failed."""
    failed = [
        Line(
            f"{text_of(check, 'level')} pre-check {text_of(check, 'name')} on {text_of(check, 'host')} "
            f"{text_of(check, 'state')}: {text_of(check, 'detail')}",
            "bad" if text_of(check, "level") == "required" else "warning",
        )
        for check in step.prechecks
        if text_of(check, "state") in ("failed", "unknown")
    ]
    tests = [
        Line(f"tests on {text_of(body, 'host')}: {words.plain(body.get('failed'))} failed", "bad")
        for body in step.checks
        if body.get("ok") is False
    ]
    return [*failed, *tests]


def _passed(step: StepStory) -> str:
    passed = sum(text_of(check, "state") == "passed" for check in step.prechecks)
    own = sum(body.get("passed") or 0 for body in step.checks if isinstance(body.get("passed"), int))
    parts = [f"{passed} pre-checks passed" if passed else "", f"{own} tests passed" if own else ""]
    return ", ".join(part for part in parts if part)


def _failed_proofs(bodies: Sequence[Json]) -> list[Block]:
    """What the proof of the way back missed."""
    return [
        Line(f"{text_of(body, 'host')}: {words.plain(body.get('missing', []))}", "bad")
        for body in bodies
        if body.get("verified") is False
    ]
