"""The chain: what an event's hash covers, and the check that a journal is whole. Standard library only.

An outsider needs nothing but this file's rules (docs/reference/journal.md) to verify a journal with tools of his own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

GENESIS = "0" * 64  # "prev" of the first event
_DOMAIN = b"changectl event 1\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One event with everything its hash covers."""

    sequence: int
    run: str
    step: int
    kind: str
    at: str
    body: bytes
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with the record: a stable word, where, and a sentence."""

    problem: str
    message: str
    sequence: int = 0  # the event it was noticed at; 0: the database as a whole


def event_hash(prev: str, run: str, step: int, kind: str, at: str, body: bytes) -> str:
    """SHA-256 over the fields, each preceded by its length in bytes so that no two lists of fields look alike."""
    digest = hashlib.sha256(_DOMAIN)
    for part in (prev.encode(), run.encode(), str(step).encode(), kind.encode(), at.encode(), body):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


def verify_chain(lines: Iterable[Line]) -> list[Finding]:
    """Every place where the journal, in the order of its sequence numbers, is not one unbroken chain."""
    findings: list[Finding] = []
    prev, expected = GENESIS, 1
    for line in lines:
        findings.extend(_check(line, prev, expected))
        prev, expected = line.hash, line.sequence + 1
    return findings


def _check(line: Line, prev: str, expected: int) -> list[Finding]:
    findings = []
    if line.sequence != expected:
        text = f"event {line.sequence} follows event {expected - 1}: what lay between is missing"
        findings.append(Finding("missing_event", text, line.sequence))
    if line.prev != prev:
        text = f"event {line.sequence} does not follow the event before it"
        findings.append(Finding("broken_link", text, line.sequence))
    if line.hash != event_hash(line.prev, line.run, line.step, line.kind, line.at, line.body):
        text = f"event {line.sequence} ({line.kind} of run {line.run}) is not what was recorded"
        findings.append(Finding("changed_event", text, line.sequence))
    return findings
