"""How a run ended, on one screen for 3 a.m.: what came of it, why, what to type next. The rest is in `show`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from changectl.core.history.events import text_of
from changectl.core.history.places import HostFolder
from changectl.core.history.reading import RunStory, StepStory
from changectl.core.history.runs import UNPROVEN
from changectl.core.ports import Json
from changectl.core.units import format_duration
from changectl.reports import _figures as figures
from changectl.reports import _proofs as proofs
from changectl.reports import _trial as trial
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Command, Facts, Heading, Line, Table
from changectl.reports._commands import told
from changectl.reports._flags import remarks
from changectl.reports._watched import watched

MOST_ROWS = 12  # figures that a screen has room for
MOST_REASONS = 5
_ORDER = ("breach", "no data", "flat", "gain", "open", "not measurable", "unequal work", "clear", "within",
          "not judged", "not defined")  # fmt: skip
_MEANING = {
    "kept": "the change is in force",
    "kept_unjudged": "the change is in force, and nobody has judged it",
    "kept_partly": "some instances run on the change and some do not; what was brought back is proven",
    "reverted": "the saved configuration runs again, and that is proven",
    "revert_unverified": "A PERSON IS NEEDED: the saved configuration came back, but that is not proven",
    "revert_failed": "A PERSON IS NEEDED: the saved configuration could not be brought back",
    "refused": "nothing was changed",
    "aborted": "it ended before anything was changed",
}
_CALIBRATED = {  # by the reason of the end
    "calibrated": "the noise is known now; the saved configuration runs, and that is proven; nothing was changed",
    "nothing_to_do": "nothing had to be done: the noise of its hosts is known well enough",
}
_IN_PLACE = ("the configuration already says so", "the saved configuration is in place already")  # of apply, of revert


def as_blocks(
    story: RunStory, exit_code: int, folders: Sequence[HostFolder] = (), *, once: bool = False
) -> list[Block]:
    """The outcome first and last, the next commands below it; for each step why, and the figures that decided.

    Args:
        story: the run's.
        exit_code: of the command.
        folders: where its way back lies on the hosts.
        once: say the outcome only last, where it stays in sight.
    """
    outcome = _outcome(story, exit_code)
    body: list[Block] = []
    if story.run.reverts:
        unsaid = "\n".join(line for line in story.text.splitlines() if line not in outcome.text)
        body += [*told(unsaid), *proofs.last_words(story.ready), *_failed_proofs(story.verify)]
    for step in story.steps:
        if step.summary.started_at is not None:
            body += _step(step)
    if not body or once:
        return [*body, *([Line("")] if body else []), outcome, *_next(story, folders)]
    return [outcome, *body, Line(""), outcome, *_next(story, folders)]


def _outcome(story: RunStory, exit_code: int) -> Line:
    run = story.run
    about = f"revert of run {run.reverts}" if run.reverts else f"run {run.run}"
    text = _MEANING.get(run.outcome, "its end is not recorded")
    if run.did_nothing:
        text = "nothing had to be done: " + _IN_PLACE[run.reverts is not None]
    if run.calibrates and run.outcome in ("kept", "reverted"):
        text = _CALIBRATED.get(run.end_reason, "the saved configuration runs, and that is proven; nothing was changed")
    if run.outcome == "kept_unjudged" and run.reverts:
        text = "what stands on the hosts was accepted as it is; nothing was changed"
    if run.outcome == "reverted" and run.incident:
        text = "the saved configuration is back, and that is proven; below stands whether the service answers"
    return Line(f"{run.outcome}: {text} ({about}, exit code {exit_code})", words.tone(run.outcome))


def _next(story: RunStory, folders: Sequence[HostFolder]) -> list[Block]:
    """What to type next; every command whole, to be copied."""
    run = story.run
    blocks: list[Block] = [Command(f"changectl show {run.run}", "the whole story")]
    blocks += [command for step in story.steps if (command := trial.going_on(run, step))]
    if run.outcome in UNPROVEN:
        blocks += _way_on(story, folders)
    elif run.outcome == "kept_partly":
        blocks.append(Command(f"changectl apply {shlex.quote(run.plan)}", "go on with the others"))
        blocks.append(Command(f"changectl revert {run.run}", "or take it back where it is kept"))
    elif any(step.summary.changed_something for step in story.steps):
        blocks.append(Command(f"changectl revert {run.run}", "take it back"))
    elif run.outcome in ("refused", "aborted") and not run.reverts:
        again = f"changectl calibrate {run.service}" if run.calibrates else f"changectl plan {shlex.quote(run.plan)}"
        blocks.append(Command(again, "once that is mended" if run.calibrates else "look again"))
    return blocks


def _way_on(story: RunStory, folders: Sequence[HostFolder]) -> list[Block]:
    """What a person can do where the old state is not back, or not proven."""
    again = f"changectl revert {story.run.to_revert}"
    return [
        Command(again, "once the cause is mended"),
        Command(f"{again} --accept-present --reason TEXT", "or accept what is there"),
        *_on_hosts(_concerned(story, folders)),
    ]


def _concerned(story: RunStory, folders: Sequence[HostFolder]) -> list[HostFolder]:
    """The folders that matter now: where a dead-man is armed, else those of the last step that is not back."""
    unproven = [step.summary.number for step in story.steps if step.summary.outcome in UNPROVEN]
    last = unproven[-1] if unproven else max((folder.step for folder in folders), default=0)
    return [one for one in folders if one.armed] or [one for one in folders if one.step == last]


def _on_hosts(folders: Sequence[HostFolder]) -> list[Block]:
    blocks: list[Block] = []
    for folder in folders:
        if folder.armed:
            when = (
                "" if folder.lease is None else f" ({format_duration(folder.lease)} after this run's last sign of life)"
            )
            text = (
                f"the dead-man on {folder.host} is still armed: when the lease is over{when}, it brings the saved files"
            )
            blocks.append(Line(f"{text} back, unless they are back by then", "warning"))
        if folder.by_hand:
            blocks.append(Command(folder.by_hand, f"or by hand, on {folder.host}"))
        else:
            text = f"or by hand, on {folder.host}: the program is in the folder runs/{folder.name} of its state folder"
            blocks.append(Line(text))
    return blocks


def _step(step: StepStory) -> list[Block]:
    summary = step.summary
    verdict = f", verdict {summary.verdict}" if summary.verdict else ""
    end = f"{summary.outcome}{verdict}"
    blocks: list[Block] = [
        Heading(f"step {summary.number}: {summary.change}", 2),
        Line(end, words.tone(summary.outcome)),
        *_reasons(step),
        *(Line(text, "warning") for text in remarks(step.flags)),
        *_figures(step.rows),
        *watched(step.watched),
        *proofs.last_words(step.ready),
        *_failed_checks(step),
        *_failed_proofs(step.verify),
    ]
    pairs = [*words.promised(step.expect, step.accept), ("checks", _passed(step))]
    pairs += [("outage", words.seconds(summary.outage_seconds))] if summary.outage_seconds is not None else []
    pairs += [("cost", trial.cost(step))]
    return [*blocks, Facts([(name, value) for name, value in pairs if value])]


def _reasons(step: StepStory) -> list[Block]:
    """Why it ended so: the verdict's reasons, or what ended it before there was one."""
    decided = step.summary.verdict is not None and step.reasons
    texts = figures.reasons(step.reasons, step.rows) if decided else []
    if not decided or (step.summary.outcome not in ("kept", "reverted") and step.summary.text):
        texts += figures.unsaid(step.summary.text, step.reasons) or [step.summary.reason]
    lines = [block for text in texts[:MOST_REASONS] if text for block in told(text, mark="- ")]
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
    if state not in _ORDER or (state == "not measurable" and not row.get("gap")):
        return len(_ORDER)  # nobody asked for it, and nothing followed from it
    return _ORDER.index(state)


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
        block
        for check in step.prechecks
        if text_of(check, "state") in ("failed", "unknown")
        for block in told(
            f"{text_of(check, 'level')} pre-check {text_of(check, 'name')} on {text_of(check, 'host')} "
            f"{text_of(check, 'state')}: {text_of(check, 'detail')}",
            "bad" if text_of(check, "level") == "required" else "warning",
        )
    ]
    tests: list[Block] = [
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
