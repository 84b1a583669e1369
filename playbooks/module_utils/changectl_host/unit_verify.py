"""Would the changed unit still verify? systemd-analyze on scratch copies, before and after: only NEW warnings count."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
from typing import Any, Dict, List, Optional

from . import commands, facts, scratch, snapshot, systemd
from .failure import Failure
from .state import Run


def unit_verify(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {before: [warnings], after: [warnings], new: [warnings]}.

    `files` are the changed files: {path, content: b64} or {path, sha256} of staged bytes (with `run`).

    Raises:
        Failure: `no_systemd`, `no_such_unit`, `cannot_verify`.
    """
    unit = systemd.check_unit(args.get("unit"))
    settings = {"unit": unit, "user_manager": args.get("user_manager")}
    present = systemd.unit_files(systemd.show(settings))
    changed = {item["path"]: _content(args, item) for item in args.get("files") or []}
    before = _warnings(unit, {path: _read(path) for path in present})
    after = _warnings(unit, {path: changed.get(path) or _read(path) for path in [*present, *changed]})
    return {"before": before, "after": after, "new": [line for line in after if line not in before]}


def _content(args: Dict[str, Any], item: Dict[str, Any]) -> bytes:
    if item.get("content") is not None:
        try:
            return base64.b64decode(item["content"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise Failure("bad_arguments", "content must be base64") from None
    return snapshot.staged(Run.of(args), item.get("sha256"))


def _read(path: str) -> bytes:
    with facts.opened(facts.resolve(path)) as file:
        return file.data


_NEVER_RAN = (126, 127)  # how a shell says that it could not start a program


def _warnings(unit: str, files: Dict[str, bytes]) -> List[str]:
    """Verify a private copy: the fragment under its own name, and each drop-in in the unit's own drop-in folder."""
    with scratch.folder("unit") as folder:
        target = _lay_out(folder, unit, files)
        if target is None:
            raise Failure("cannot_verify", f"{unit} has no unit file of its own")
        program = shutil.which("systemd-analyze")
        if program is None:
            # Said here: behind the words that give it a /tmp of its own, its absence would read like a warning.
            raise Failure("no_such_program", "systemd-analyze does not exist on this host")
        result = commands.run([*_private_tmp(), program, "verify", "--man=no", target], timeout=60)
        if result.status in _NEVER_RAN:
            raise Failure("cannot_verify", f"systemd-analyze was not run: {(result.err or result.out).strip()[-500:]}")
        lines = [line.replace(folder + "/", "").strip() for line in (result.out + result.err).splitlines()]
        lines = sorted({re.sub(r":\d+:", ":", line) for line in lines if line and _about(line, unit)})
        if result.status and not lines:
            raise Failure("cannot_verify", f"systemd-analyze verify: {(result.err or result.out).strip()[-500:]}")
        return lines


def _private_tmp() -> List[str]:
    """Words before a command that give it a /tmp of its own; none where this user or this host does not allow that.

    systemd-analyze makes and removes a folder in /tmp, wherever the unit lies.
    """
    words = ["unshare", "--mount", "--", "sh", "-c", 'mount -t tmpfs changectl /tmp && exec "$@"', "sh"]
    try:
        return words if os.geteuid() == 0 and commands.run([*words, "true"]).status == 0 else []
    except Failure:
        return []


def _lay_out(folder: str, unit: str, files: Dict[str, bytes]) -> Optional[str]:
    target = None
    for number, (path, data) in enumerate(files.items()):
        if path.endswith(".conf"):
            place = os.path.join(folder, f"{unit}.d", f"{number:03d}-{os.path.basename(path)}")
        else:
            place = target = os.path.join(folder, unit)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as out:
            out.write(data)
    return target


def _about(line: str, unit: str) -> bool:
    """Other units' old warnings are not this change's business."""
    return unit in line or not re.match(
        r"\S+\.(service|socket|target|mount|timer|path|slice|device|swap|scope)[: ]", line
    )
