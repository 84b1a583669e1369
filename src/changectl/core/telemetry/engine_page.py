"""A metrics page read by canonical names, in canonical units. What is not there is missing, and never zero."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core.engine import Page
from changectl.core.telemetry.engine_series import BY_NAME, CANONICAL, TO_CANONICAL, Canonical, MetricTable, Series
from changectl.core.telemetry.prometheus import Metrics, PageError, Sample, parse

NOT_EXPOSED = "not exposed"
NOT_ON_PAGE = "not on the metrics page"
NO_NUMBER = "the page says NaN or infinity"

Buckets = tuple[tuple[float, float], ...]  # (upper edge, observations up to it), edges growing, the last one infinite


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure.

    Attributes:
        value: a gauge's value, a counter's count, or the sum of a time in seconds.
        count: of a time: how many observations the sum holds; None: the page does not count them.
        buckets: of a histogram.
        parts: the very series that it was read from, as they stand on the page: of these, one alone may begin anew.
    """

    value: float
    count: float | None = None
    buckets: Buckets = ()
    parts: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def mean(self) -> float | None:
        """Per observation; None: none, or not counted."""
        return self.value / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class EnginePage:
    """All canonical names: each is either read or missing."""

    readings: Mapping[str, Reading] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # name -> why

    def value(self, name: str) -> float | None:
        """The figure, None where it is missing. Raises KeyError: there is no such canonical name."""
        BY_NAME[name]
        return self.readings[name].value if name in self.readings else None


def read_page(table: MetricTable, page: Page | None, model: str | None = None) -> EnginePage:
    """Every canonical name of one page.

    Args:
        table: what the engine exposes, and where.
        page: its metrics page; None: it was not asked for.
        model: of several models on one page, the one that is meant; of a single one the name does not matter, since
            a model may be served under several.
    """
    metrics, why = _understood(page)
    if metrics is None:
        return EnginePage(missing={row.name: why if table.series.get(row.name) else NOT_EXPOSED for row in CANONICAL})
    readings: dict[str, Reading] = {}
    missing: dict[str, str] = {}
    for row in CANONICAL:
        found = _first(row, table, metrics, model)
        if isinstance(found, Reading):
            readings[row.name] = found
        else:
            missing[row.name] = found
    return EnginePage(readings, missing)


def read_lengths(table: MetricTable, page: Page | None, model: str | None = None) -> dict[str, Reading]:
    """How long requests were: `input` and `output` in tokens, as histograms; what is not on the page is left out."""
    metrics, _ = _understood(page)
    found: dict[str, Reading] = {}
    if metrics is None:
        return found
    rows = _Rows(metrics, table.model_label, model)
    for name, spellings in table.lengths.items():
        for series in spellings:
            reading = _histogram(series.name, TO_CANONICAL[series.unit], rows)
            if isinstance(reading, Reading) and reading.buckets:
                found.setdefault(name, reading)
    return found


def _understood(page: Page | None) -> tuple[Metrics | None, str]:
    if page is None:
        return None, "the metrics page was not asked for"
    if not page.ok:
        return None, f"the metrics page was not read: {page.said()}"
    try:
        return parse(page.body), ""
    except PageError as error:
        return None, f"the metrics page is not understood: {error}"


def _first(row: Canonical, table: MetricTable, metrics: Metrics, model: str | None) -> Reading | str:
    """The first spelling that the page has, or why there is no figure."""
    why = NOT_EXPOSED
    for series in table.series.get(row.name, ()):
        why = NOT_ON_PAGE
        found = _read(row, series, _Rows(metrics, table.model_label, model))
        if found is not None:
            return found
    return why


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a page that are about our model."""

    metrics: Metrics
    label: str
    model: str | None

    def of(self, name: str) -> Sequence[Sample]:
        found = self.metrics.find(name) or self.metrics.find(name.replace(":", "_"))
        models = {sample.labels[self.label] for sample in found if self.label in sample.labels}
        if len(models) < 2:
            return found
        return [sample for sample in found if sample.labels.get(self.label) == self.model]


def _read(row: Canonical, series: Series, rows: _Rows) -> Reading | str | None:
    """None: the page does not have it."""
    factor = TO_CANONICAL[series.unit]
    if series.histogram:
        return _histogram(series.name, factor, rows)
    found: list[Sample] = []
    for name in (series.name, *series.plus):
        of_name = rows.of(name)
        if not of_name:
            return None
        found += of_name
    counted = [one for one in found if all(one.labels.get(key) in values for key, values in series.where.items())]
    if not counted:
        return Reading(0.0) if series.none_is_zero else None
    values = [one.value * factor for one in counted]
    value = max(values) if row.largest else _sum(values)
    if not all(map(math.isfinite, (value, *values))):
        return NO_NUMBER
    if row.unit == "share" and not 0 <= value <= 1:
        return f"the page says {value:g}, which is no share"
    if value < 0:
        return f"the page says {value:g}, which cannot be"
    return Reading(value, parts={_spelled(one): one.value for one in counted})


def _histogram(name: str, factor: float, rows: _Rows) -> Reading | str | None:
    sums, counts, edges = rows.of(f"{name}_sum"), rows.of(f"{name}_count"), rows.of(f"{name}_bucket")
    if not sums or not counts:
        return None
    parts = {_spelled(one): one.value for one in (*sums, *counts, *edges)}
    total = _sum([one.value for one in sums]) * factor
    count = _sum([one.value for one in counts])
    if not all(map(math.isfinite, (total, count, *parts.values()))):
        return NO_NUMBER
    if (least := min(parts.values())) < 0:
        return f"the page says {least:g}, which cannot be"
    return Reading(total, count, _buckets(edges, factor), parts)


def _buckets(rows: Sequence[Sample], factor: float) -> Buckets:
    """Several engines' buckets added up; none where edges differ, are no numbers, or a larger one holds less."""
    summed: dict[float, float] = {}
    seen: dict[float, int] = {}
    for sample in rows:
        try:
            edge = float(sample.labels["le"]) * factor
        except (KeyError, ValueError):
            return ()
        summed[edge] = summed.get(edge, 0.0) + sample.value
        seen[edge] = seen.get(edge, 0) + 1
    if len(set(seen.values())) > 1 or math.inf not in summed or any(map(math.isnan, summed)):
        return ()
    found = tuple(sorted(summed.items()))
    held = [count for _, count in found]
    return found if held == sorted(held) and math.isfinite(held[-1]) else ()


def _sum(values: Sequence[float]) -> float:
    """Infinity or NaN where no number holds it."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond the largest number; infinities of both signs
        return math.nan


def _spelled(sample: Sample) -> str:
    labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}"


def gauges_of(table: MetricTable) -> Iterator[str]:
    """The series on a page that hold gauges, every spelling: what a sampler on the host has to keep of it."""
    for row in CANONICAL:
        if row.kind != "gauge":
            continue
        for series in table.series.get(row.name, ()):
            yield from dict.fromkeys((series.name, series.name.replace(":", "_")))
