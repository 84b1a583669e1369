"""The chain: what an event's hash covers, and the check that a journal is whole. Standard library only.

An outsider needs nothing but this file's rules (docs/reference/journal.md) to verify a journal with tools of his own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

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
    for part in (_bytes(prev), _bytes(run), str(step).encode(), _bytes(kind), _bytes(at), body):
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()


@dataclass(slots=True)
class Chain:
    """Walks along a journal, event by event, and says where it is not one unbroken chain."""

    prev: str = field(default=GENESIS, init=False)
    expected: int = field(default=1, init=False)

    def check(self, line: Line) -> list[Finding]:
        """What is wrong with the next event."""
        findings = []
        if line.sequence != self.expected:
            text = f"event {line.sequence} follows event {self.expected - 1}: what lay between is missing"
            findings.append(Finding("missing_event", text, line.sequence))
        if line.prev != self.prev:
            text = f"event {line.sequence} does not follow the event before it"
            findings.append(Finding("broken_link", text, line.sequence))
        if line.hash != event_hash(line.prev, line.run, line.step, line.kind, line.at, line.body):
            text = f"event {line.sequence} ({line.kind} of run {line.run}) is not what was recorded"
            findings.append(Finding("changed_event", text, line.sequence))
        self.prev, self.expected = line.hash, line.sequence + 1
        return findings


def verify_chain(lines: Iterable[Line]) -> list[Finding]:
    """Every place where the journal, in the order of its sequence numbers, is not one unbroken chain."""
    chain = Chain()
    return [finding for line in lines for finding in chain.check(line)]


def _bytes(text: str) -> bytes:
    # A field that was damaged until it is no text any more is compared byte for byte, like any other.
    return text.encode("utf-8", "surrogateescape")
