"""The saved state of a run: a manifest and the files' bytes, 0600 in the run's folder, never beside the originals."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Set

from . import records, system
from .failure import Failure
from .state import FORMAT, Run, read_record, save_json


def manifest(run: Run) -> Dict[str, Any]:
    """The saved facts.

    Raises:
        Failure: `not_captured` when the run has none; `newer_format`.
    """
    content = read_record(run.path("snapshot", "manifest.json"))
    if content is None:
        raise Failure("not_captured", f"run {run.name} has no complete snapshot on this host")
    return content


def manifest_or_none(run: Run) -> Optional[Dict[str, Any]]:
    """The saved facts, or None."""
    return manifest(run) if os.path.exists(run.path("snapshot", "manifest.json")) else None


def save_manifest(run: Run, content: Dict[str, Any]) -> str:
    """Write the manifest, which makes the snapshot complete; returns its digest."""
    path = os.path.join(run.make("snapshot"), "manifest.json")
    save_json(path, {"format": FORMAT, **content})
    with open(path, "rb") as source:
        return system.sha256(source.read())


def save_blob(run: Run, data: bytes) -> str:
    """Keep bytes by their digest."""
    digest = system.sha256(data)
    system.save(os.path.join(run.make("snapshot", "files"), digest), data)
    return digest


def blob(run: Run, digest: str) -> bytes:
    """The saved bytes.

    Raises:
        Failure: `damaged_state` when they are missing or are not what was saved.
    """
    return _checked(run.path("snapshot", "files", digest), digest)


def staged(run: Run, digest: Any) -> bytes:
    """New bytes that were brought to the host before.

    Raises:
        Failure: `not_staged`, `damaged_state`.
    """
    path = run.path("staged", check_digest(digest))
    if not os.path.exists(path):
        raise Failure("not_staged", f"the new bytes {digest} were not brought to this host for run {run.name}")
    return _checked(path, digest)


def check_digest(value: Any) -> str:
    """A SHA-256 in lower-case hexadecimal, fit to be a file name."""
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise Failure("bad_arguments", f"{value!r} is not a SHA-256 in hexadecimal")
    return value


def _checked(path: str, digest: str) -> bytes:
    try:
        with open(path, "rb") as source:
            data = source.read()
    except OSError as error:
        raise Failure("damaged_state", f"saved bytes cannot be read: {path}: {error.strerror}") from error
    if system.sha256(data) != digest:
        raise Failure("damaged_state", f"saved bytes are not what was saved: {path}")
    return data


def written(run: Run, resolved: str) -> Set[str]:
    """Digests (or "absent") that this run wrote, or was about to write, to a file since it was last brought back."""
    return {
        str(event["sha256"])
        for event in records.since_back(run)
        if event.get("event") in ("write.intent", "restore.intent") and event.get("resolved") == resolved
    }


def torn_pairs(run: Run, resolved: str) -> Set[str]:
    """Digests before and after of in-place writes to a file that have no outcome, since it was last brought back."""
    pending: Set[str] = set()
    for event in records.since_back(run):
        if event.get("resolved") != resolved:
            continue
        if event.get("event") in ("write.intent", "restore.intent") and event.get("method") == "in_place":
            pending |= {str(event["before"]), str(event["sha256"])}
        elif event.get("event") in ("write.outcome", "restore.outcome"):
            pending.clear()
    return pending
