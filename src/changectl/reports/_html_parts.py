"""The parts of the page: the table of figures, an instance with its drawings, what was edited, what happened when."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from changectl.core.history.events import mapping_of, mappings_of, number_of, text_of
from changectl.core.history.reading import Entry, RunStory
from changectl.core.history.time_said import REST, STAGES, WHOLE
from changectl.core.history.time_spent import TimeSpent, time_spent
from changectl.core.measuring.distribution import Curve, distributions
from changectl.core.measuring.records import Record
from changectl.core.ports import Json
from changectl.core.units import SHARE, format_duration, format_share
from changectl.reports import _figures as figures
from changectl.reports import _html_charts as charts
from changectl.reports import _time as time
from changectl.reports import _trial as trial
from changectl.reports import _words as words
from changectl.reports._blocks import Heading, Line, Table
from changectl.reports._html_charts import PhasePoint
from changectl.reports._svg import Markup, joined, tag

_NAMES = {
    "ttft_user": "Time to the first token",
    "tpot": "Time per output token",
    "e2e_user": "Time to the whole answer",
}
_BESIDE_BARS = ("a request, as the client saw it", "  ")  # rows of the table that the bars show already


def figures_table(rows: Sequence[Json]) -> Markup:
    """Every guarded figure before and after, the change drawn with its bounds."""
    if not rows:
        return Markup()
    several = len({text_of(row, "host") for row in rows}) > 1
    scale = f"-{format_share(charts.REACH)} to +{format_share(charts.REACH)}"
    headings = ["figure", *(["host"] if several else []), "before", "after", "change", scale, "result"]
    body = [tag("tr", *_figure(row, several), class_=text_of(row, "state").replace(" ", "-")) for row in rows]
    told = "Drawn: the change with the bounds between which it lies, more to the right. ▲ beyond its limit"
    return joined([
        tag("h3", "Before and after"),
        _table(headings, body),
        tag("p", told, class_="soft small"),
    ])  # fmt: skip


def _bounds(row: Json) -> tuple[float | None, float | None, float | None]:
    change = number_of(row, "change")
    if text_of(row, "unit") == SHARE:
        before, after = number_of(row, "before"), number_of(row, "after")
        change = None if before is None or after is None else after - before
    return number_of(row, "low"), number_of(row, "high"), change


def _figure(row: Json, several: bool) -> Iterator[Markup]:
    low, high, at = _bounds(row)
    moved = ": ".join(part for part in (words.change(row), trial.bounds(row)) if part)
    yield tag("td", words.place(row), class_="name")
    if several:
        yield _cell("host", text_of(row, "host"))
    yield _cell("before", words.figure(row, "before"), "n")
    yield _cell("after", words.figure(row, "after"), "n")
    yield _cell("change", moved)
    drawn = charts.change(low, high, at, moved) if at is not None or low is not None else Markup()
    yield tag("td", drawn, class_="drawn")
    yield _cell("result", figures.result(row))


def _cell(name: str, text: str, class_: str | None = None) -> Markup:
    return tag("td", text, class_=class_, data_name=name) if text else tag("td")


def _table(headings: Sequence[str], rows: Sequence[Markup], numbers: Collection[str] = ("before", "after")) -> Markup:
    head = tag("tr", *(tag("th", text, scope="col", class_="n" if text in numbers else None) for text in headings))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="cards"), class_="wide")


def instance(
    story: RunStory, step: int, host: str, bodies: Sequence[Json], raw: Mapping[str, Iterable[Record]], *, named: bool
) -> list[Markup]:
    """What was measured on an instance, drawn."""
    where = f" on {host}" if named else ""
    sides = [
        [record for body in bodies if text_of(body, "phase") == letter for record in raw.get(text_of(body, "blob"), ())]
        for letter in "AB"
    ]
    levels = list(dict.fromkeys(text_of(one, "name") for body in bodies for one in _levels(body)))
    drawn = [_distribution(one) for one in distributions(sides[0], sides[1], levels)]
    over_time = [figure for level in levels for figure in _over_time(story, step, host, bodies, level)]
    blocks: list[Markup] = []
    if drawn:
        blocks += [tag("h2", f"Distributions{where}"), _key("curve"), tag("div", *drawn, class_="charts")]
    if over_time:
        told = (
            "Each phase where it ran, freshly started: its median, with the 95th percentile above it where there is one"
        )
        blocks += [tag("h2", f"Phases over time{where}"), tag("p", told, class_="soft"), _key("dot")]
        blocks.append(tag("div", *over_time, class_="charts"))
    return [*blocks, *(part for one in time_spent(bodies) for part in _time_went(one, bodies, where))]


def _levels(body: Json) -> list[Mapping[str, Any]]:
    return mappings_of(mapping_of(body, "summary"), "levels")


def _distribution(one: Any) -> Markup:
    told = [f"{name} {_curve(curve)}" for name, curve in (("before", one.before), ("after", one.after)) if curve]
    caption = tag("figcaption", tag("b", f"{_NAMES[one.metric]} at {one.level}"), tag("span", "; ".join(told)))
    return tag("figure", caption, charts.distribution(one))


def _curve(curve: Curve) -> str:
    middle, late = curve.at(0.5), curve.at(0.95)
    found = "unbounded" if middle is None else format_duration(middle, 3)
    told = f"{found}, 95 % by {format_duration(late, 3)}" if late is not None else f"{found}, 95 % never"
    failed = f", {curve.failed} failed" if curve.failed else ""
    return f"{told} ({curve.n} requests{failed})"


def _over_time(story: RunStory, step: int, host: str, bodies: Sequence[Json], level: str) -> Iterator[Markup]:
    """One drawing for each metric of which any phase has a median there."""
    entries = [one for one in story.timeline if (one.step, one.host) == (step, host) and one.action == "measure"]
    ran = [(one.offset_seconds, one.offset_seconds + (one.duration_seconds or 0.0)) for one in entries
           if one.duration_seconds is not None]  # fmt: skip
    if len(ran) != len(bodies):
        return
    for metric, name in _NAMES.items():
        points = [
            PhasePoint(
                text_of(body, "phase"), number, begins - ran[0][0], ends - ran[0][0], *_latency(body, level, metric)
            )
            for number, (body, (begins, ends)) in enumerate(zip(bodies, ran, strict=True), 1)
        ]
        if any(point.middle is not None for point in points):
            title = f"{name} at {level}, phase by phase"
            yield tag("figure", tag("figcaption", tag("b", f"{name} at {level}")), charts.phases(points, title))


def _latency(body: Json, level: str, metric: str) -> tuple[float | None, float | None]:
    found: Mapping[str, Any] = next((one for one in _levels(body) if text_of(one, "name") == level), {})
    statistics = mapping_of(mapping_of(found, "latency"), metric)
    middle, high = (math.inf if statistics.get(name) == "unbounded" else number_of(statistics, name)
                    for name in ("p50", "p95"))  # fmt: skip
    return middle, high


def _key(form: str) -> Markup:
    """What before and after look like."""
    draw = {
        "curve": ('<path d="M2 8H42" class="curve before"/>', '<path d="M2 8H42" class="curve after"/>'),
        "dot": (
            '<path d="M2 1H42V15H2Z" class="band before"/><circle cx="22" cy="8" r="4" class="dot before"/>',
            '<path d="M2 1H42V15H2Z" class="band after"/><path d="M18 4H26V12H18Z" class="dot after"/>',
        ),
    }[form]
    names = ("before (A, the saved configuration)", "after (B, the new one)")
    sign = '<svg viewBox="0 0 44 16" aria-hidden="true">{}</svg>'
    items = [tag("span", Markup(sign.format(one)), name) for one, name in zip(draw, names, strict=True)]
    return tag("div", *items, class_="key")


def _time_went(one: TimeSpent, bodies: Sequence[Json], where: str) -> Iterator[Markup]:
    """The stages of a request as bars, and what engine and host did beside them."""
    yield tag("h2", f"Where the time went{where}")
    if one.said:
        yield tag("p", one.said)
    named = [(name, one.row(name)) for name in (*STAGES, REST)]
    stages = [(time.SHOWN[name].strip(), row) for name, row in named if _mean(row.before) or _mean(row.after)]
    if stages:
        whole = one.row(WHOLE)
        bars = charts.stages(
            [(_mean(row.before), _mean(row.after)) for _, row in stages],
            (_mean(whole.before), _mean(whole.after)),
        )
        body = [
            tag("tr", tag("td", f"{number}  {name}", class_="name"), _cell("before", _seconds(row.before), "n"),
                _cell("after", _seconds(row.after), "n"))
            for number, (name, row) in enumerate(stages, 1)
        ]  # fmt: skip
        total = tag("tr", tag("td", "all of it", class_="name"), _cell("before", _seconds(whole.before), "n"),
                    _cell("after", _seconds(whole.after), "n"))  # fmt: skip
        yield tag(
            "div", tag("figure", bars), _table(("of each request", "before", "after"), [*body, total]), class_="two"
        )
    yield tag("h3", "Engine and host meanwhile")
    for block in time.blocks([body for body in bodies if text_of(body, "host") == one.host]):
        if isinstance(block, Table):
            rows = [tag("tr", tag("td", row[0], class_="name"), *(_cell(name, text) for name, text in
                    zip(block.headings[1:], row[1:], strict=True))) for row in block.rows
                    if not row[0].startswith(_BESIDE_BARS)]  # fmt: skip
            yield _table(block.headings, rows, ()) if rows else Markup()
        elif isinstance(block, Line) and block.text != one.said:
            yield tag("p", block.text, class_="quiet")
        elif isinstance(block, Heading):
            continue


def _mean(side: Any) -> float | None:
    return None if side is None else side.mean


def _seconds(side: Any) -> str:
    mean = _mean(side)
    return words.UNKNOWN if mean is None else format_duration(mean, 3)


def edit(body: Json) -> Markup:
    """What was changed in one file."""
    path, host = text_of(body, "path"), text_of(body, "host")
    return joined([tag("h3", f"{path} on {host}"), tag("pre", text_of(body, "diff") or "(no difference)")])


def timeline(entries: Sequence[Entry]) -> Markup:
    """What happened when."""
    rows = [
        tag(
            "tr",
            tag("td", f"+{one.offset_seconds:.1f} s", class_="n name"),
            _cell("what", one.action),
            _cell("host", one.host),
            _cell("state", "" if one.state == "noted" else one.state),
            _cell("took", "" if one.duration_seconds is None else words.seconds(one.duration_seconds), "n"),
            _cell("detail", one.detail),
        )
        for one in entries
    ]
    return joined(
        [
            tag("h2", "What happened when"),
            _table(("at", "what", "host", "state", "took", "detail"), rows, ("at", "took")),
        ]
    )


def plan(text: str) -> Markup:
    """The plan as it was applied."""
    return joined([tag("h2", "The plan"), tag("pre", text)]) if text else Markup()


def foot(story: RunStory, version: str) -> Markup:
    """How somebody who trusts nobody checks this."""
    run = story.run
    digest = f" Plan: sha256 {run.plan_digest}." if run.plan_digest else ""
    return tag(
        "footer",
        tag("p", f"Written by changectl {version} from the record of run {run.run}.{digest}"),
        tag("p", "Compute its verdict again from the raw records: ", tag("code", f"changectl judge {run.run}"),
            ". Check the record itself: ", tag("code", "changectl audit verify --hosts"), "."),
    )  # fmt: skip
