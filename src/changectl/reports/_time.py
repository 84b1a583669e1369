"""Where the time went: what engine and host did in the measured phases, before and after, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changectl.core.history.time_said import REST, STAGES, WHOLE, Side, TimeRow
from changectl.core.history.time_spent import LEAST, TimeSpent, time_spent
from changectl.core.ports import Json
from changectl.core.precheck import format_bytes
from changectl.core.telemetry.engine_page import NOT_EXPOSED, NOT_ON_PAGE
from changectl.core.telemetry.engine_window import BEGAN_ANEW
from changectl.core.telemetry.host_window import NOT_READ
from changectl.core.units import format_duration, format_share
from changectl.reports._blocks import Block, Heading, Line, Table

# What is shown, in this order; everything else is in `--json`. A second figure is the highest (or lowest) value seen.
SHOWN = {
    WHOLE: "a request, as the client saw it",
    "queue_time": "  in the engine's queue",
    "preprocess_time": "  pre-processing",
    "prefill_time": "  reading the input (prefill)",
    "decode_time": "  generating the output (decode)",
    "postprocess_time": "  post-processing",
    REST: "  not told apart by the engine",
    "waiting": "requests waiting in the engine",
    "running": "requests being worked on",
    "kv_use": "context cache in use",
    "preemptions": "preemptions",
    "cache_hit": "input tokens found in the cache",
    "cpu": "CPU, all cores",
    "busiest_core": "CPU, busiest core",
    "busiest_thread": "busiest thread of the service",
    "run_delay": "a thread waiting for a core",
    "throttled": "stopped for its CPU quota",
    "run_queue": "run queue",
    "psi_cpu": "pressure: CPU",
    "psi_memory": "pressure: memory",
    "psi_io": "pressure: disks",
    "service_memory": "memory of the service",
    "memory_available": "memory available",
    "swap_in": "read back from swap",
    "disk_read": "read from disks",
    "retransmit_share": "TCP segments sent again",
    "network_errors": "damaged packets",
    "oom_kills": "processes ended for lack of memory",
    "restarts": "restarts of the service",
    "gpu_use": "GPU in use",
    "gpu_memory": "GPU memory",
}
_OF_REQUEST = (*STAGES, REST)
_EVENTS = ("preemptions", "retransmit_share", "network_errors", "oom_kills", "restarts", "swap_in", "throttled")
_SIDES = ("before", "after")
_SHORT = 48  # characters of a reason that a cell has room for
_FORMS: dict[str, Callable[[float], str]] = {
    "s": lambda value: format_duration(value, 3),
    "share": format_share,
    "bytes": format_bytes,
    "bytes/s": lambda value: f"{format_bytes(value)}/s",
}


def blocks(measurements: Sequence[Json]) -> list[Block]:
    """One table for each instance, the sentence above it; nothing where no phase was sampled."""
    compared = time_spent(measurements)
    found: list[Block] = []
    for one in compared:
        where = f" on {one.host}" if len(compared) > 1 else ""
        found.append(Heading(f"where the time went{where}", 3))
        found += [Line(one.said)] if one.said else []
        found += _figures(one)
    return found


def _figures(one: TimeSpent) -> list[Block]:
    """What there is in a table; below it what stayed at zero, and what nobody could read."""
    rows = {row.name: row for row in one.rows}
    sides = [name for name in _SIDES if getattr(rows[WHOLE], name) is not None]
    cells: list[list[str]] = []
    zero: list[str] = []
    lacking: dict[str, list[str]] = {}
    for name, words in SHOWN.items():
        both = [getattr(rows[name], side) for side in sides]
        if all(side.missing for side in both):
            lacking.setdefault(_short(both[0]), []).append(words.strip())
        elif name in _EVENTS and all(side.mean == 0 for side in both):
            zero.append(words)
        else:
            cells.append([words, *(_cell(rows[name], side, rows[WHOLE]) for side in sides)])
    lines = [("none seen", zero), *lacking.items()]
    return [
        Table(("figure", *sides), cells),
        *(Line(f"{what}: {', '.join(names)}", "quiet") for what, names in lines if names),
    ]


def _cell(row: TimeRow, which: str, whole: TimeRow) -> str:
    side: Side | None = getattr(row, which)
    if side is None:
        return ""
    if side.missing:
        return _short(side)
    form = _FORMS.get(row.unit, _plain)
    text = "" if side.mean is None else form(side.mean)
    if row.name in _OF_REQUEST:
        text += _share(side, getattr(whole, which))
    if side.most is not None:
        text += f", at {'least' if row.name in LEAST else 'most'} {form(side.most)}"
    return f"{text} ({side.of})" if side.of else text


def _plain(value: float) -> str:
    return f"{value:.3g}"


def _share(side: Side, whole: Side | None) -> str:
    if whole is None or not whole.mean or side.mean is None:
        return ""
    return f" ({format_share(side.mean / whole.mean, 2)})"


def _short(side: Side) -> str:
    """Why a figure is missing, as short as a cell; in full it stands in `--json`."""
    if side.missing in (NOT_EXPOSED, NOT_ON_PAGE):
        return NOT_EXPOSED
    if side.missing == BEGAN_ANEW:
        return "restarted in between"
    return side.missing if len(side.missing) <= _SHORT else NOT_READ
