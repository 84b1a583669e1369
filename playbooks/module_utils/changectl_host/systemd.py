"""systemd as its own tools show it: unit properties, files in effective order, environment files, the journal."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, List, Optional, Tuple

from . import commands
from .failure import Failure

_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,250}\.service\Z")
_REPEATED = ("ExecStart", "ExecStop", "ExecReload", "ExecStartPre", "ExecStartPost", "EnvironmentFiles")
_JOURNAL_LINES = 2000
_START_LINES = 400  # engines say what they were started with among their first lines


def owned() -> bool:
    """Whether systemd runs this host and we may give it units."""
    return os.path.isdir("/run/systemd/system") and os.geteuid() == 0


def check_unit(unit: Any) -> str:
    """The unit's name.

    Raises:
        Failure: `bad_arguments`.
    """
    if not isinstance(unit, str) or not _UNIT.match(unit) or unit.startswith("-"):
        raise Failure("bad_arguments", f"{unit!r} is not the name of a systemd service")
    return unit


def systemctl(
    settings: Dict[str, Any], *words: str, timeout: float = 30.0, run_id: Optional[str] = None
) -> commands.Result:
    """Run systemctl for the unit's manager.

    Raises:
        Failure: `no_systemd` when the host was not booted with systemd.
    """
    scope = ["--user"] if settings.get("user_manager") else []
    try:
        result = commands.run(["systemctl", *scope, "--no-pager", *words], timeout=timeout, run_id=run_id)
    except Failure as failure:
        if failure.reason == "no_such_program":
            raise Failure("no_systemd", "this host has no systemctl: it is not managed by systemd") from None
        raise
    if result.status and ("not been booted with systemd" in result.err or "Failed to connect to bus" in result.err):
        raise Failure("no_systemd", f"systemd does not answer on this host: {result.err.strip()}")
    return result


def parse_show(text: str) -> Dict[str, Any]:
    """`systemctl show` output: {property: text}; properties that may stand several times are lists of text."""
    found: Dict[str, Any] = {name: [] for name in _REPEATED}
    last: Optional[str] = None
    for line in text.split("\n"):
        name, mark, value = line.partition("=")
        if mark and re.match(r"[A-Z][A-Za-z0-9]*\Z", name):
            last = name
            if name in _REPEATED:
                found[name].append(value)
            else:
                found[name] = value
        elif last is not None and line:
            # A value with a line break in it: systemctl prints it as it is.
            if last in _REPEATED:
                found[last][-1] += f"\n{line}"
            else:
                found[last] += f"\n{line}"
    return {name: value for name, value in found.items() if value != []}


def show(settings: Dict[str, Any]) -> Dict[str, Any]:
    """All properties of the unit.

    Raises:
        Failure: `no_systemd`; `no_such_unit`.
    """
    unit = check_unit(settings.get("unit"))
    result = systemctl(settings, "show", "--all", unit)
    properties = parse_show(result.out)
    if result.status or properties.get("LoadState") in (None, "not-found"):
        raise Failure("no_such_unit", f"{unit} does not exist on this host {result.err.strip()}".strip())
    return properties


def main_pid(properties: Dict[str, Any]) -> Optional[int]:
    """The unit's main process; None when it has none."""
    text = properties.get("MainPID", "0")
    return int(text) if text.isdigit() and int(text) > 0 else None


def describe(settings: Dict[str, Any]) -> Dict[str, Any]:
    """Unit, properties, files (fragment, then drop-ins in the order in which they apply) and environment files."""
    properties = show(settings)
    return {
        "unit": settings["unit"],
        "show": properties,
        "files": unit_files(properties),
        "env_files": environment_files(properties),
        "need_daemon_reload": _yes_or_no(properties.get("NeedDaemonReload")),
        "exec_start": properties.get("ExecStart", []),
    }


def _yes_or_no(text: Any) -> Optional[bool]:
    """None: this systemd does not tell."""
    return {"yes": True, "no": False}.get(text)


def unit_files(properties: Dict[str, Any]) -> List[str]:
    """The fragment and the drop-ins in effective order."""
    fragment = [properties["FragmentPath"]] if properties.get("FragmentPath") else []
    return fragment + [path for path in properties.get("DropInPaths", "").split() if path.startswith("/")]


def environment_files(properties: Dict[str, Any]) -> List[Dict[str, Any]]:
    """EnvironmentFile= entries in order: {path, optional}; a leading dash makes one optional."""
    found = []
    for entry in properties.get("EnvironmentFiles", []):
        match = re.match(r"(/.*?)(?: \(ignore_errors=(yes|no)\))?\Z", entry, re.DOTALL)
        if match:
            found.append({"path": match.group(1), "optional": match.group(2) == "yes"})
    return found


def seconds(text: str) -> Optional[float]:
    """A time span as systemctl prints it ("1min 30s", "500ms"); None for "infinity" or what is not understood."""
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
    total = 0.0
    for part in text.split():
        match = re.match(r"([0-9.]+)(us|ms|s|min|h|d|w)\Z", part)
        if match is None:
            return None
        total += float(match.group(1)) * units[match.group(2)]
    return total if text.split() else None


def journal(
    settings: Dict[str, Any], cursor: Optional[str], since: Optional[float] = None
) -> Tuple[List[str], Optional[str]]:
    """The unit's log lines after a cursor or since a time (else the last 20), and the cursor to go on from.

    Raises:
        Failure: `no_journal` when the journal cannot be read.
    """
    words = ["journalctl", "--unit", check_unit(settings.get("unit")), "--output=json", "--no-pager", "--quiet"]
    if settings.get("user_manager"):
        words[1:3] = [f"--user-unit={settings['unit']}"]
    if cursor:
        words.append(f"--after-cursor={cursor}")
    elif since is not None:
        words.append(f"--since=@{since:.6f}")
    words.append(f"--lines={20 if not cursor and since is None else _JOURNAL_LINES}")
    result = commands.run(words, timeout=20)
    if result.status and not result.out:
        raise Failure("no_journal", f"the journal cannot be read: {result.err.strip()}")
    lines, last = parse_journal(result.out)
    return lines, last or cursor


def start_of_journal(settings: Dict[str, Any], properties: Dict[str, Any]) -> List[str]:
    """The first log lines of the unit's present start; empty where systemd does not tell them apart."""
    invocation = properties.get("InvocationID", "")
    if not invocation or settings.get("user_manager"):
        return []
    words = ["journalctl", f"_SYSTEMD_INVOCATION_ID={invocation}", "--output=json", "--no-pager", "--quiet"]
    return parse_journal(commands.head(words, _START_LINES))[0]


def parse_journal(text: str) -> Tuple[List[str], Optional[str]]:
    """`journalctl -o json` output: messages and the last cursor; messages that are not UTF-8 come as lists of bytes."""
    lines: List[str] = []
    cursor: Optional[str] = None
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if not isinstance(entry, dict):
            continue
        message = entry.get("MESSAGE")
        if isinstance(message, list) and all(isinstance(item, int) and 0 <= item < 256 for item in message):
            message = bytes(message).decode(errors="replace")
        if isinstance(message, str):
            lines.append(message)
        cursor = entry.get("__CURSOR") or cursor
    return lines, cursor
