"""A run as one page to keep, print or send: everything in it, no script, nothing fetched from anywhere.

All that comes from the record is text: elements are made in `_svg` alone, which escapes what it is given, and the page
forbids scripts and every source of its own accord.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from changectl.core.history.events import text_of
from changectl.core.history.reading import RunStory, StepStory
from changectl.core.measuring.records import Record
from changectl.reports import _figures as figures
from changectl.reports import _html_parts as parts
from changectl.reports import _words as words
from changectl.reports._flags import remarks
from changectl.reports._html_charts import patterns
from changectl.reports._html_style import STYLE
from changectl.reports._svg import Markup, joined, tag

Raw = Mapping[str, Iterable[Record]]  # digest of a phase's raw records -> the records

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIGNS = {"good": "✓", "bad": "✗"}
BACK = "↩"


def as_page(story: RunStory, step: int | None, raw: Raw, lost: Sequence[str], version: str) -> str:
    """The page of a run, or of one of its steps.

    Args:
        story: the run.
        step: the step; None: all of them.
        raw: the raw records that are whole.
        lost: what is to be said of those that are not.
        version: of the program that writes the page.
    """
    title = f"run {story.run.run}"
    chosen = [one for one in story.steps if step in (None, one.summary.number)]
    body = tag(
        "main",
        _head(story, chosen),
        *(_step(story, one, raw, lost, several=len(chosen) > 1) for one in chosen),
        parts.timeline([one for one in story.timeline if step is None or one.step in (0, step)]),
        parts.plan(story.plan_text),
        parts.foot(story, version),
    )
    head = tag(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", f"changectl {title}"),
        tag("style", Markup(STYLE)),
    )
    page = tag("html", head, tag("body", patterns(), body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _head(story: RunStory, steps: Sequence[StepStory]) -> Markup:
    run = story.run
    what = f"Revert of run {run.reverts}" if run.reverts else "; ".join(str(one.summary.change) for one in steps)
    facts = [
        ("why", " · ".join(part for part in (run.reason, run.ticket or "", run.incident) if part) or "not recorded"),
        ("service", f"{run.service} on {', '.join(run.hosts) or 'no host'}"),
        *([("model", story.model)] if story.model else []),
        *([("workload", story.workload)] if story.workload else []),
        ("who", f"{run.actor or 'not recorded'}, with changectl {run.tool_version or 'of unknown version'}"),
        ("when", f"{words.moment(run.opened_at)} to {words.moment(run.closed_at)}"),
        ("without an answer", words.seconds(run.outage_seconds)),
    ]
    code = "no exit code" if run.exit_code is None else f"exit code {run.exit_code}"
    return joined([
        tag("p", f"changectl · run {run.run}", class_="over"),
        tag("h1", what.replace(" -> ", " → ") or "A run of which no change is recorded"),
        _ending(words.outcome(run), code, run.outcome),
        tag("dl", *(joined([tag("dt", name), tag("dd", value)]) for name, value in facts)),
        *(tag("p", line) for line in story.text.splitlines()),
    ])  # fmt: skip


def _ending(text: str, beside: str, word: str) -> Markup:
    tone = words.tone(word)
    sign = BACK if word == "reverted" else _SIGNS.get(tone, "?")
    return tag("div", tag("b", sign), tag("span", text), tag("span", f"({beside})"), class_=f"end {tone}")


def _reasons(step: StepStory) -> list[str]:
    """Why, each with its instance where there are several."""
    hosts = [text_of(reason, "host") for reason in step.reasons]
    told = figures.reasons(step.reasons, step.rows)
    if len(set(hosts)) < 2:
        return told
    return [text if text.startswith(host) else f"{host}: {text}" for host, text in zip(hosts, told, strict=True)]


def _step(story: RunStory, step: StepStory, raw: Raw, lost: Sequence[str], *, several: bool) -> Markup:
    summary = step.summary
    title = f"Step {summary.number}: {summary.change}".replace(" -> ", " → ") if several else "The verdict"
    verdict = summary.verdict or "not judged"
    head = [tag("h2", title), _ending(verdict, summary.outcome, summary.verdict or "")]
    told = _reasons(step)
    if summary.text:
        told += [line for line in figures.unsaid(summary.text, step.reasons) if line not in told]
    head += [tag("ul", *(tag("li", text) for text in told))] if told else []
    head += [tag("p", text, class_="warning") for text in remarks(step.flags)]
    pairs = words.promised(step.expect, step.accept)
    head += [tag("dl", *(joined([tag("dt", name), tag("dd", value)]) for name, value in pairs))] if pairs else []
    blocks = [*head, parts.figures_table(step.rows)]
    hosts = list(dict.fromkeys(text_of(body, "host") for body in step.measurements))
    for host in hosts:
        own = [body for body in step.measurements if text_of(body, "host") == host]
        blocks += parts.instance(story, summary.number, host, own, raw, named=len(hosts) > 1)
    blocks += [tag("p", text, class_="warning") for text in lost]
    return joined([*blocks, *(parts.edit(one) for one in step.edits)])
