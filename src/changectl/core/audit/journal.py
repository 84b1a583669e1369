"""What a journal says of itself: where its chain breaks, which side effects have no end, and what it refers to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from changectl.core.audit.chain import Chain, Finding, Line
from changectl.core.history import events as kinds
from changectl.core.history.events import mapping_of, text_of, texts_of

# These are never told without having been announced; other outcomes may be facts that were found (`ready.outcome`).
ANNOUNCED: Final = frozenset({kinds.CAPTURE, kinds.WRITE, kinds.RESTART, kinds.RESTORE, kinds.MEASURE})
DEATHS: Final = frozenset({kinds.LOCK_TAKEN_OVER, "recover.started"})  # what says that an earlier process died
_DIGEST = re.compile(r"[0-9a-f]{64}")

Kept = Literal["blob", "snapshot"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Bytes beside the database that an event names by their SHA-256."""

    kept: Kept
    digest: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A side effect that was announced and whose end is not recorded."""

    run: str
    step: int
    action: str
    host: str
    folder: str  # the run folder on the host, where the intent names one
    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.action}{f' on {self.host}' if self.host else ''} (event {self.sequence})"


@dataclass(frozen=True, slots=True)
class Armed:
    """A run that says that a host armed its dead-man, and so was told the journal's head."""

    run: str
    names: frozenset[str]  # how the host may name the run
    host: str
    sequence: int  # of the event that says so


@dataclass(frozen=True, slots=True)
class Noted:
    """A head that an event says was left on a host."""

    sequence: int
    hash: str
    by: int  # the event


@dataclass(slots=True)
class RunAccount:
    """One run, as its events tell it."""

    run: str
    hosts: tuple[str, ...] = ()
    opened: int = 0  # sequence; 0: not
    closed: int = 0
    death: int = 0  # the last event which says that an earlier process of this run died
    begun: list[Begun] = field(default_factory=list)

    def unanswered(self) -> Iterator[Finding]:
        """The intents of a closed run that have no outcome, though nothing says that the program died there."""
        for intent in self.begun:
            if self.death < intent.sequence < self.closed:
                text = f"run {self.run} is closed, and how {intent} ended is not recorded"
                yield Finding("intent_without_outcome", text, intent.sequence)


class Account:
    """A journal, read once from its beginning to its end."""

    def __init__(self) -> None:
        self.last: Line | None = None
        self.runs: dict[str, RunAccount] = {}
        self.hashes: dict[int, str] = {}
        self.references: dict[Reference, int] = {}  # and the first event that names it
        self.armed: list[Armed] = []
        self.noted: list[Noted] = []
        self._chain = Chain()
        self._findings: list[Finding] = []

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Account:
        """Of these events, in the order of their sequence numbers."""
        account = cls()
        for line in lines:
            account.add(line)
        return account

    def findings(self) -> list[Finding]:
        """All that is wrong with what was read so far, without asking anybody."""
        loose = [finding for run in self.runs.values() for finding in run.unanswered()]
        return [*self._findings, *loose]

    def found(self, finding: Finding) -> None:
        """Add what the reader of the database itself noticed."""
        self._findings.append(finding)

    def add(self, line: Line) -> None:
        """Take the next event."""
        self._findings += self._chain.check(line)
        self.last = line
        self.hashes[line.sequence] = line.hash
        run = self.runs.setdefault(line.run, RunAccount(line.run))
        body = self._body(line)
        action, _, part = line.kind.rpartition(".")
        if part == "intent":
            run.begun.append(_begun(line, action, body))
        elif part == "outcome":
            self._outcome(run, line, action, body)
        elif line.kind == kinds.RUN_OPENED:
            run.opened, run.hosts = line.sequence, texts_of(body, "hosts")
        elif line.kind == kinds.RUN_CLOSED:
            run.closed = line.sequence
        if line.kind in DEATHS:
            run.death = line.sequence
        if action in (kinds.ARM, kinds.DISARM):
            self._note_head(line, body)

    def _body(self, line: Line) -> Mapping[str, Any]:
        try:
            body = json.loads(line.body.decode("utf-8"))
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, dict):
            return body
        text = f"the body of event {line.sequence} ({line.kind} of run {line.run}) is no JSON object"
        self.found(Finding("malformed_event", text, line.sequence))
        return {}

    def _outcome(self, run: RunAccount, line: Line, action: str, body: Mapping[str, Any]) -> None:
        intent = _intent_of(run.begun, line.step, action, text_of(body, "host"))
        if intent is not None:
            run.begun.remove(intent)
        elif action in ANNOUNCED:
            text = f"event {line.sequence} tells how {action} of run {line.run} ended, which no event announced"
            self.found(Finding("outcome_without_intent", text, line.sequence))
        if action == kinds.ARM and body.get("armed") is True and intent is not None:  # whose head the host was given
            self.armed.append(_armed(line, body, intent))
        names: list[tuple[Kept, str]] = [("blob", "blob"), ("snapshot", "copy")]
        if action == kinds.CAPTURE:
            names.append(("blob", "model"))
        for kept, name in names:
            if _DIGEST.fullmatch(digest := text_of(body, name)):
                self.references.setdefault(Reference(kept, digest), line.sequence)

    def _note_head(self, line: Line, body: Mapping[str, Any]) -> None:
        head = mapping_of(body, "head")
        sequence, digest = head.get("sequence"), head.get("hash")
        if not isinstance(sequence, int) or not isinstance(digest, str):
            return
        self.noted.append(Noted(sequence, digest, line.sequence))
        if self.hashes.get(sequence) != digest:
            text = f"event {line.sequence} says that event {sequence} was {digest}, which it is not now"
            self.found(Finding("rewritten", text, line.sequence))


def _begun(line: Line, action: str, body: Mapping[str, Any]) -> Begun:
    names = {name: text_of(body, name) for name in ("host", "folder")}
    return Begun(line.run, line.step, action, **names, sequence=line.sequence, hash=line.hash)


def _armed(line: Line, body: Mapping[str, Any], intent: Begun) -> Armed:
    names = {line.run, f"{line.run}.{line.step}", f"{line.run}/{line.step}"}
    if intent.folder:
        names = {intent.folder}  # of another run, where a revert arms the one that it takes back
    return Armed(line.run, frozenset(names), text_of(body, "host"), line.sequence)


def _intent_of(begun: list[Begun], step: int, action: str, host: str) -> Begun | None:
    """The intent that this outcome answers: of the same host, or the latest where one of them names none."""
    same = [intent for intent in begun if (intent.step, intent.action) == (step, action)]
    fitting = [intent for intent in same if intent.host == host]
    fitting = fitting or [intent for intent in same if not (intent.host and host)]
    return fitting[-1] if fitting else None
