"""What an approval or a record of a plan stands for: one digest over everything that decides what the plan does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping


def sha256(content: bytes) -> str:
    """The SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def plan_digest(*, plan: str, service: str, files: Mapping[str, str], hosts: Iterable[str], tool_version: str) -> str:
    """The digest of a plan with all it depends on.

    Args:
        plan: digest of the plan file.
        service: digest of the service file.
        files: digest per file that plan and service name (workload, checks), by the path as written.
        hosts: the hosts it touches; order and repetition do not matter.
        tool_version: changectl's version.
    """
    covered = {
        "format": 1,
        "plan": plan,
        "service": service,
        "files": dict(files),
        "hosts": sorted(set(hosts)),
        "tool_version": tool_version,
    }
    return sha256(json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode())
