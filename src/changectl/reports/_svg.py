"""Markup without a way in for foreign text: elements are made by one function, which escapes all that it is given."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from changectl.reports._safe import safe


class Markup(str):
    """Text that is markup already; everything else is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    """Foreign text, harmless: neither markup nor a control or bidirectional character in it works."""
    return text if isinstance(text, Markup) else Markup(html.escape(safe(text), quote=True))


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(escaped, parts)))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; None leaves an attribute out, `class_` and `stroke_width` are written without their underscores."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def svg(width: float, height: float, title: str, *content: object) -> Markup:
    """A drawing that scales with its column, and is told as its title to who cannot see it."""
    return tag("svg", tag("title", title), *content, viewBox=f"0 0 {width:g} {height:g}", role="img",
               class_="drawing", xmlns="http://www.w3.org/2000/svg")  # fmt: skip


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def label(x: float, y: float, text: object, class_: str = "", anchor: str = "start") -> Markup:
    """A word in a drawing."""
    return tag("text", text, x=float(x), y=float(y), class_=class_ or None, text_anchor=anchor)


def rectangle(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """A filled area."""
    return tag("rect", x=float(x), y=float(y), width=max(0.0, float(width)), height=float(height), class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    """A line through points."""
    moves = " ".join(f"{'M' if not place else 'L'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(points))
    return tag("path", d=moves, class_=class_)


def mark(x: float, y: float, letter: str, size: float = 4.0) -> Markup:
    """A phase's figure: a hollow circle before the change, a filled square after it."""
    if letter == "A":
        return tag("circle", cx=float(x), cy=float(y), r=size, class_="dot before")
    return rectangle(x - size, y - size, 2 * size, 2 * size, "dot after")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values from `low` to `high`, in steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]
