"""A systemd service: fragment and drop-ins, environment files, start limit, stop grace, states."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from changectl.core.errors import EditRefused
from changectl.core.manager import Room, ServiceState, Show, SourceFile
from changectl.core.observed import Observed, Status
from changectl.core.settings import Carrier
from changectl.managers import _shared

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.service")
_UNIT_FOLDERS = ("/etc/systemd/", "/run/systemd/", "/usr/lib/systemd/", "/lib/systemd/", "/usr/local/lib/systemd/")
_UNIT_SUFFIXES = {".service", ".socket", ".target", ".timer", ".slice", ".mount", ".path"}
_SPAN = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s|min|h|d|w|month|y)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
            "month": 2629800.0, "y": 31557600.0}  # fmt: skip


class Systemd:
    """Reads what `systemctl show` prints; never guesses the order of drop-ins, the host tells it."""

    name = "systemd"
    reboot_safe = True

    def target(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """`{systemd: {unit: x.service}}`; the ending may be left out.

        Raises:
            InputError: no unit, or a name that is none of a service.
        """
        parts = _shared.section(spec, "systemd", {"unit"})
        unit = str(parts.get("unit") or "")
        other_kind = PurePosixPath(unit).suffix in _UNIT_SUFFIXES - {".service"}
        unit = unit if unit.endswith(".service") else f"{unit}.service"
        if other_kind or unit == ".service" or unit.startswith("-") or not _UNIT.fullmatch(unit):
            raise _shared.problem(f"{parts.get('unit')!r} is not the name of a service unit", "systemd/unit",
                                  "for example: unit: vllm.service")  # fmt: skip
        return {"systemd": {"unit": unit}}

    def carrier_files(self, observed: Observed, carrier: Carrier) -> list[tuple[str, bytes]]:
        """A unit: its fragment, then its drop-ins in effective order; a file: that file.

        Raises:
            EditRefused: the host did not tell the unit's files or their bytes, or the unit is another one.
        """
        if carrier.unit is None:
            return _shared.carrier_file(observed, carrier)
        unit = observed.manager.unit
        if unit is not None and carrier.unit.removesuffix(".service") != unit.removesuffix(".service"):
            raise EditRefused(f"the carrier names {carrier.unit}, the manager's unit is {unit}", reason="other_unit")
        if not observed.manager.files:
            raise EditRefused(f"the host did not tell the files of {carrier.unit}", reason="not_read")
        found = [(path, observed.content(path)) for path in observed.manager.files]
        missing = [path for path, data in found if data is None]
        if missing:
            raise EditRefused(f"{', '.join(missing)} was not read on the host", reason="not_read")
        return [(path, data) for path, data in found if data is not None]

    def environment_sources(self, observed: Observed) -> list[SourceFile]:
        """The unit's files (Environment=), then its environment files, which override them."""
        units = [SourceFile(path, observed.content(path), "unit") for path in observed.manager.files or ()]
        files = [
            SourceFile(entry.path, observed.content(entry.path), "environment_file")
            for entry in observed.manager.env_files or ()
        ]
        return units + files

    def start_limit_room(self, show: Show | None, starts_needed: int) -> Room:
        """Whether StartLimitBurst allows the starts; the limit is off where its interval or burst is 0."""
        burst_text, interval_text = _text(show, "StartLimitBurst"), _text(show, "StartLimitIntervalUSec")
        interval = seconds(interval_text)
        if not burst_text.isdigit() or interval is None:
            return Room(None, f"{starts_needed} starts needed, start limit not known")
        if int(burst_text) == 0 or interval == 0:
            return Room(True, f"{starts_needed} starts needed, no start limit")
        figure = f"{starts_needed} starts needed, {burst_text} allowed in {interval_text}"
        return Room(int(burst_text) >= starts_needed, figure)

    def stop_grace(self, show: Show | None) -> float | None:
        """TimeoutStopSec in seconds."""
        return seconds(_text(show, "TimeoutStopUSec"))

    def state(self, status: Status, earlier: Status | None = None) -> ServiceState:
        """A growing restart counter or a failed unit is a crash loop: it will not get better by waiting."""
        restarted = None not in (status.restarts, earlier and earlier.restarts) and (
            (status.restarts or 0) > ((earlier.restarts if earlier else 0) or 0)
        )
        if restarted or status.active == "failed":
            return "crash_loop"
        if status.active in {"activating", "reloading"}:
            return "starting"
        return "up" if status.active == "active" and status.process is not None else "down"

    def managed_by(self, files: Mapping[str, bytes]) -> str | None:
        """From the header comments of the files."""
        return _shared.managed_by(files)

    def needs_daemon_reload_after(self, path: str) -> bool:
        """True for units and drop-ins; environment files are read at every start."""
        place = PurePosixPath(path)
        if place.suffix in _UNIT_SUFFIXES:
            return True
        return place.suffix == ".conf" and place.parent.suffix == ".d" and (
            path.startswith(_UNIT_FOLDERS) or "/systemd/user/" in path or "/systemd/system/" in path
        )  # fmt: skip

    def owns_port(self, observed: Observed, endpoint: str) -> bool | None:
        """Whether the port is held inside the unit's process tree."""
        return _shared.owns_port(observed, endpoint)

    def missing_safeguards(self, show: Show | None) -> Sequence[str] | None:
        """Restart= policy, logs that grow without rotation, and a memory limit's absence is not held against a unit."""
        if not show or "Restart" not in show:
            return None
        found = [] if _text(show, "Restart") not in {"", "no"} else ["no restart policy (Restart=on-failure)"]
        for stream in ("StandardOutput", "StandardError"):
            kind = _text(show, stream)
            if kind.startswith(("file", "append", "truncate")):
                found.append(f"{stream} goes to a file: see that it is rotated")
        return found


def seconds(text: str) -> float | None:
    """A time span as systemctl prints it: "1min 30s", "infinity", bare microseconds; None: not understood."""
    text = text.strip()
    if text == "infinity" or text == str(2**64 - 1):
        return math.inf
    if text.isdigit():
        return int(text) / 1e6  # properties ending in USec are plain microseconds where they are not pretty-printed
    total, position = 0.0, 0
    while position < len(text):
        match = _SPAN.match(text, position)
        if match is None or match["unit"] is None:
            return None
        total += float(match["number"]) * _SECONDS[match["unit"]]
        position = match.end() + (len(text[match.end() :]) - len(text[match.end() :].lstrip()))
    return total if text else None


def _text(show: Show | None, name: str) -> str:
    value = (show or {}).get(name, "")
    return value if isinstance(value, str) else " ".join(value)


MANAGER = Systemd()
