"""The story of one run, or of one of its steps, for people and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from changectl.core.history.events import mapping_of, text_of, texts_of
from changectl.core.history.reading import Entry, RunStory, StepStory
from changectl.core.history.time_spent import time_spent
from changectl.core.ports import Json
from changectl.reports import _figures as figures
from changectl.reports import _measured as measured
from changectl.reports import _proofs as proofs
from changectl.reports import _time as time
from changectl.reports import _trial as trial
from changectl.reports import _verdict as verdict
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Line, Table, Verbatim
from changectl.reports._commands import told
from changectl.reports._flags import remarks
from changectl.reports._prechecks import prechecks
from changectl.reports._runs import FORMAT, run_json, step_json
from changectl.reports._watched import watched

TIME = "where_the_time_went"
_PLACES = ("file", "process", "engine")

_PARTS = (
    *("prechecks", "edits", "reasons", "rows", "flags", "effective", "ready"),
    *("measurements", "watched", "checks", "verify", "evidence", "calibrations"),
)


def as_json(story: RunStory, step: int | None = None) -> dict[str, Any]:
    """The document of `changectl show RUN[/STEP] --json`."""
    return {
        "format": FORMAT,
        "run": run_json(story.run),
        "plan_text": story.plan_text,
        "text": story.text,
        "prechecks": [dict(result) for result in story.prechecks],
        "ready": [dict(body) for body in story.ready],
        "verify": [dict(body) for body in story.verify],
        "steps": [_step_json(each) for each in _chosen(story, step)],
        "timeline": [asdict(entry) for entry in _entries(story, step)],
    }


def as_blocks(story: RunStory, step: int | None = None) -> list[Block]:
    """What, why, who, and for each step the diff, the figures, the reasons; then what happened when."""
    blocks = [*_head(story), *_prechecks(story.prechecks)]
    blocks += [*proofs.ready(story.ready), *proofs.proofs(story.verify)]
    for each in _chosen(story, step):
        blocks += _step(story, each)
    return [*blocks, *_timeline(_entries(story, step))]


def _chosen(story: RunStory, step: int | None) -> list[StepStory]:
    return [each for each in story.steps if step in (None, each.summary.number)]


def _entries(story: RunStory, step: int | None) -> list[Entry]:
    return [entry for entry in story.timeline if step is None or entry.step in (0, step)]


def _step_json(step: StepStory) -> dict[str, Any]:
    lists = {name: [dict(body) for body in getattr(step, name)] for name in _PARTS}
    times = [one.to_json() for one in time_spent(step.measurements)]
    return {**step_json(step.summary), "expect": step.expect, "accept": step.accept, **lists, TIME: times}


def _head(story: RunStory) -> list[Block]:
    run = story.run
    what = f"revert of run {run.reverts}" if run.reverts else "; ".join(str(step.change) for step in run.steps)
    end = "no exit code" if run.exit_code is None else f"exit code {run.exit_code}"
    pairs = [
        ("what", what or "not recorded"),
        ("ticket", run.ticket or "none"),
        ("why", run.reason or "not recorded"),
        *([("incident", run.incident)] if run.incident else []),
        ("who", f"{run.actor or 'not recorded'}, with changectl {run.tool_version or 'of unknown version'}"),
        ("service", f"{run.service} on {', '.join(run.hosts) or 'no host'}"),
        (
            "service file" if run.calibrates else "plan",
            f"{run.plan} (sha256 {run.plan_digest})" if run.plan_digest else run.plan,
        ),
        ("when", f"{words.moment(run.opened_at)} to {words.moment(run.closed_at)}"),
        ("outage", words.seconds(run.outage_seconds)),
        *([("goes on with", f"the trial of run {run.extends}")] if run.extends else []),
        *([("went on in", f"run {run.extended_by}")] if run.extended_by else []),
    ]
    title = Heading(f"run {run.run}")
    ended = told(f"ended: {story.text}") if story.text else []
    return [title, Line(f"{words.outcome(run)} ({end})", words.tone(run.outcome)), Facts(pairs), *ended]


def _step(story: RunStory, step: StepStory) -> list[Block]:
    summary = step.summary
    judged = f", verdict {summary.verdict}" if summary.verdict else ""
    blocks: list[Block] = [
        Heading(f"step {summary.number}: {summary.change}", 2),
        Line(f"{summary.outcome}{judged}", words.tone(summary.outcome)),
    ]
    blocks += [Line(text, "warning") for text in remarks(step.flags)]
    if summary.failures_flagged and not any("failures" in text_of(flag, "code") for flag in step.flags):
        blocks.append(Line("more than 1 % of the requests failed", "warning"))
    pairs = [
        *words.promised(step.expect, step.accept),
        ("outage", words.seconds(summary.outage_seconds)),
        ("cost", trial.cost(step)),
    ]
    blocks.append(Facts([(name, value) for name, value in pairs if value]))
    if cause := _cause(step):
        blocks += told(f"ended because: {cause}")
    blocks += [
        *verdict.reasons(step.reasons, step.rows),
        *verdict.table(step.rows),
        *_edits(step.edits),
        *_prechecks(step.prechecks),
    ]
    blocks += [*measured.blocks(step.measurements, story.workload, story.model), *time.blocks(step.measurements)]
    blocks += [*_effective(step.effective), *proofs.ready(step.ready), *watched(step.watched)]
    blocks += [*proofs.checks(step.checks), *proofs.proofs(step.verify)]
    return [*blocks, *proofs.evidence(step.evidence)]


def _cause(step: StepStory) -> str:
    """Why the step ended as it did; nothing where the outcome or the verdict's reasons are all that there is to say."""
    summary = step.summary
    if not summary.text:
        return "" if summary.reason == summary.outcome else summary.reason
    return "\n".join(figures.unsaid(summary.text, step.reasons)) or summary.reason


def _edits(edits: Sequence[Json]) -> list[Block]:
    blocks: list[Block] = []
    for edit in edits:
        blocks.append(Heading(f"diff of {text_of(edit, 'path')} on {text_of(edit, 'host')}", 3))
        blocks.append(Verbatim(text_of(edit, "diff") or "(no difference)"))
    return blocks


def _effective(bodies: Sequence[Json]) -> list[Block]:
    """The three values, before and after, of every instance."""
    if not bodies:
        return []
    rows = []
    for body in bodies:
        values = mapping_of(body, "values")
        cells = [words.plain(values[place]) if place in values else words.UNKNOWN for place in _PLACES]
        result = words.plain(body["effective"]) if "effective" in body else words.UNKNOWN
        moved = ", ".join(texts_of(body, "also_moved"))
        rows.append([text_of(body, "host"), *cells, result, moved])
    headings = ("host", *_PLACES, "effective", "also moved")
    return [Heading("values in effect", 3), Table(headings, rows)]


def _prechecks(results: Sequence[Json]) -> list[Block]:
    """One table for each host: its name in every row would cost the room that the figures need."""
    blocks: list[Block] = []
    for host in dict.fromkeys(text_of(result, "host") for result in results):
        own = [result for result in results if text_of(result, "host") == host]
        rows = [(text_of(one, "name"), text_of(one, "level"), text_of(one, "state"), text_of(one, "figure"),
                 text_of(one, "detail")) for one in own]  # fmt: skip
        blocks += [Heading(f"pre-checks on {host}", 3), *prechecks("check", rows)]
    return blocks


def _timeline(entries: Sequence[Entry]) -> list[Block]:
    rows = [
        [
            f"+{entry.offset_seconds:.1f} s",
            str(entry.step) if entry.step else "",
            entry.action,
            entry.host,
            "" if entry.state == "noted" else entry.state,
            "" if entry.duration_seconds is None else words.seconds(entry.duration_seconds),
            entry.detail,
        ]
        for entry in entries
    ]
    return [Heading("what happened when", 2), Table(("at", "step", "what", "host", "state", "took", "detail"), rows)]
