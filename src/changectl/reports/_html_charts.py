"""The drawings of the page: distributions, phases over time, where the time went, changes with their bounds.

Each is drawn as wide as a phone, so that its words are never smaller than they were drawn; wider pages put more of them
side by side. Before and after differ in form (thin and dashed, thick and whole; circle, square; plain, hatched), not
in colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.measuring.distribution import Curve, Distribution
from changectl.core.units import format_duration
from changectl.reports._svg import Markup, joined, label, line, mark, path, rectangle, svg, tag, ticks

WIDTH, HEIGHT = 340.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 12.0, 14.0, 30.0
_SIDES = (("before", 0), ("after", 1))

REACH = 0.1  # of a change that is drawn: margins are smaller, and what is beyond is told in words
Both = tuple[float | None, float | None]  # before and after


@dataclass(frozen=True, slots=True)
class PhasePoint:
    """One phase on the axis of time.

    Attributes:
        letter: A or B.
        number: of the phase.
        begins: seconds since the first phase began.
        ends: likewise.
        middle: the median; None: not measured.
        high: the 95th percentile; None: too few requests for one.
    """

    letter: str
    number: int
    begins: float
    ends: float
    middle: float | None
    high: float | None


class Axes:
    """From values to places in a drawing."""

    def __init__(self, xs: tuple[float, float], ys: tuple[float, float]) -> None:
        self._xs, self._ys = xs, ys

    def x(self, value: float) -> float:
        """From the left edge."""
        low, high = self._xs
        return LEFT + (value - low) / ((high - low) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """From the top."""
        low, high = self._ys
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)


def distribution(found: Distribution) -> Markup:
    """What share of the requests had it by when; where requests failed a curve ends below the top."""
    curves = [curve for curve in (found.before, found.after) if curve is not None]
    low = min(curve.points[0][0] for curve in curves)
    high = max(curve.points[-1][0] for curve in curves)
    room = (high - low) * 0.05 or high * 0.1 or 1.0
    axes = Axes((max(0.0, low - room), high + room), (0.0, 1.0))
    parts = [*_shares(axes), *_times(axes, max(0.0, low - room), high + room)]
    for curve, name in ((found.before, "before"), (found.after, "after")):
        if curve is not None:
            parts += _stairs(axes, curve, name)
    title = f"{found.metric} at {found.level}: share of requests that had it by then, before and after"
    return svg(WIDTH, HEIGHT, title, *parts)


def _stairs(axes: Axes, curve: Curve, name: str) -> list[Markup]:
    points: list[tuple[float, float]] = [(axes.x(curve.points[0][0]), axes.y(0.0))]
    for seconds, share in curve.points:
        points += [(axes.x(seconds), points[-1][1]), (axes.x(seconds), axes.y(share))]
    drawn = [path(points, f"curve {name}")]
    if (middle := curve.at(0.5)) is not None:
        drawn.append(mark(axes.x(middle), axes.y(0.5), "A" if name == "before" else "B"))
    return drawn


def _shares(axes: Axes) -> list[Markup]:
    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawn.append(line(LEFT, axes.y(share), WIDTH - RIGHT, axes.y(share), "grid" if share else "axis"))
        drawn.append(label(LEFT - 6, axes.y(share) + 4, f"{share * 100:.0f} %", "tick", "end"))
    return drawn


def _times(axes: Axes, low: float, high: float) -> list[Markup]:
    drawn = []
    for value in ticks(low, high):
        x = axes.x(value)
        drawn.append(line(x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4, "axis"))
        anchor = "middle" if x < WIDTH - 26 else "end"
        drawn.append(label(x, HEIGHT - BOTTOM + 17, _duration(value), "tick", anchor))
    return drawn


def _duration(seconds: float) -> str:
    return "0" if seconds == 0 else format_duration(seconds, 3)


def phases(points: Sequence[PhasePoint], title: str) -> Markup:
    """The median of each phase where it ran, the 95th percentile above it; between them the service was started."""
    known = [
        value for point in points for value in (point.middle, point.high) if value is not None and value < math.inf
    ]
    last = max(point.ends for point in points)
    axes = Axes((0.0, last), (0.0, (max(known, default=0.0) or 1.0) * 1.1))
    parts = []
    for point in points:
        left, right = axes.x(point.begins), axes.x(point.ends)
        parts.append(rectangle(left, TOP, right - left, HEIGHT - TOP - BOTTOM, f"band {_side(point.letter)}"))
        parts.append(label((left + right) / 2, TOP - 3, point.letter, "letter", "middle"))
    parts += _levels(axes, (max(known, default=0.0) or 1.0) * 1.1)
    for point in points:
        parts += _phase(axes, point)
    parts += [line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"), *_minutes(axes, last)]
    return svg(WIDTH, HEIGHT, title, *parts)


def _phase(axes: Axes, point: PhasePoint) -> list[Markup]:
    x = axes.x((point.begins + point.ends) / 2)
    if point.middle is None:
        return [label(x, HEIGHT - BOTTOM - 6, "?", "letter", "middle")]
    if math.isinf(point.middle):
        return [label(x, TOP + 14, "∞", "letter", "middle")]
    y = axes.y(point.middle)
    if point.high is None or math.isinf(point.high):
        return [mark(x, y, point.letter)]
    top = axes.y(point.high)
    return [line(x, y, x, top, "whisker"), line(x - 4, top, x + 4, top, "whisker"), mark(x, y, point.letter)]


def _levels(axes: Axes, high: float) -> list[Markup]:
    drawn = []
    for value in ticks(0.0, high, 4):
        drawn.append(line(LEFT, axes.y(value), WIDTH - RIGHT, axes.y(value), "grid"))
        drawn.append(label(LEFT - 6, axes.y(value) + 4, _duration(value), "tick", "end"))
    return drawn


def _minutes(axes: Axes, last: float) -> list[Markup]:
    drawn = []
    unit = next(seconds for seconds in (3600.0, 60.0, 1.0) if last >= 2 * seconds or seconds == 1.0)
    for number in ticks(0.0, last / unit, 4):
        value = number * unit
        x = axes.x(value)
        anchor = "middle" if x < WIDTH - 26 else "end"
        drawn.append(label(x, HEIGHT - BOTTOM + 17, _duration(value), "tick", anchor))
    return drawn


def _side(letter: str) -> str:
    return "before" if letter == "A" else "after"


def stages(parts: Sequence[Both], whole: Both) -> Markup:
    """Two bars of what a request's time was made of, before and after, each part with its own pattern and number."""
    longest = max([math.fsum(one[side] or 0.0 for one in parts) for _, side in _SIDES] + [1e-9])
    width, height, drawn = WIDTH - 58, 34.0, []
    for name, side in _SIDES:
        y = 8.0 + side * 50
        drawn.append(label(0, y + 21, name, f"side {name}"))
        x = 50.0
        for number, part in enumerate(parts, 1):
            long = (part[side] or 0.0) / longest * width
            if long <= 0:
                continue
            drawn.append(rectangle(x, y, long, height, f"stage p{(number - 1) % 6 + 1}"))
            if long >= 13:
                drawn.append(tag("circle", cx=x + long / 2, cy=y + height / 2, r=8.0, class_="number"))
                drawn.append(label(x + long / 2, y + height / 2 + 4, number, "letter", "middle"))
            x += long
    told = " before, ".join(_duration(value) if value is not None else "not known" for value in whole)
    return svg(WIDTH, 100, f"what a request's time was made of: {told} after", *drawn)


def patterns() -> Markup:
    """The fills that tell areas apart without colour; once on a page."""
    lines = {
        "hatch": '<path d="M0 6 6 0" class="ink"/>',
        "p2": '<path d="M0 6 6 0" class="ink"/>',
        "p3": '<circle cx="3" cy="3" r="1" class="inkdot"/>',
        "p4": '<path d="M0 3H6" class="ink"/>',
        "p5": '<path d="M0 0 6 6M0 6 6 0" class="ink"/>',
        "p6": '<path d="M3 0V6" class="ink"/>',
    }
    made = [
        Markup(f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">{drawn}</pattern>')
        for name, drawn in lines.items()
    ]
    definitions = tag("defs", joined(made))
    return tag("svg", definitions, width=0, height=0, aria_hidden="true", class_="patterns")


def change(low: float | None, high: float | None, at: float | None, title: str) -> Markup:
    """The change with its bounds around "no change" in the middle; what is beyond `REACH` is an arrow at that end."""
    width, middle, y = 150.0, 75.0, 11.0

    def x(value: float) -> float:
        return middle + max(-1.0, min(1.0, value / REACH)) * (middle - 8)

    parts = [line(8, y, width - 8, y, "grid"), line(middle, 1, middle, 21, "axis")]
    parts += [line(x(side), y - 3, x(side), y + 3, "grid") for side in (-REACH, -REACH / 2, REACH / 2, REACH)]
    if low is not None and high is not None and min(abs(low), abs(high)) < REACH:
        parts.append(line(x(low), y, x(high), y, "bounds"))
        parts += [line(x(end), y - 4, x(end), y + 4, "whisker") for end in (low, high) if abs(end) <= REACH]
    if at is not None:
        parts.append(mark(x(at), y, "B", 3.5) if abs(at) <= REACH else _arrow(x(at), y, at))
    return svg(width, 22, title, *parts)


def _arrow(x: float, y: float, value: float) -> Markup:
    tip = math.copysign(7.0, value)
    return tag(
        "path", d=f"M{x - tip:.1f} {y - 5:.1f}L{x + tip:.1f} {y:.1f}L{x - tip:.1f} {y + 5:.1f}Z", class_="dot after"
    )
