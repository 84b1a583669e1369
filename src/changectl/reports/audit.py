"""What an audit of the record found: the verdict's three words, each with what it rests on, and every finding."""

from __future__ import annotations

import dataclasses
from typing import Any

from changectl.core.audit.journal import RunAccount
from changectl.core.audit.verdict import Audit
from changectl.core.audit.witness import Witnesses
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Line
from changectl.reports._commands import told
from changectl.reports._runs import FORMAT

NOT_ASKED = (
    "no host was asked; whoever can write the database could have computed all hashes anew, or cut off its end. "
    "Ask them: changectl audit verify --hosts"
)


def as_json(audit: Audit) -> dict[str, Any]:
    """The document of `changectl audit verify --json`; `hosts` of it can be read again with `--witness`."""
    return {
        "format": FORMAT,
        "verdict": list(audit.words),
        "linked": audit.linked,
        "complete": audit.complete,
        "witnessed": None if audit.witnessed is None else dataclasses.asdict(audit.witnessed),
        "events": audit.events,
        "runs": audit.runs,
        "blobs": audit.blobs,
        "snapshots": audit.snapshots,
        "findings": [
            {"problem": finding.problem, "event": finding.sequence or None, "message": finding.message}
            for finding in audit.findings
        ],
        "open_runs": [_open_json(run) for run in audit.open_runs],
        "hosts": {
            host: [{"at": head.at, "run": head.run, "what": head.what, "sequence": head.sequence, "hash": head.hash}
                   for head in heads]
            for host, heads in audit.witnesses.heads.items()
        },
        "asked_at_event": _asked_at(audit.witnesses),
        "silent": dict(audit.witnesses.silent),
        "unasked": [{"run": armed.run, "host": armed.host, "event": armed.sequence} for armed in audit.unasked],
        "exit_code": audit.exit_code,
    }  # fmt: skip


def as_blocks(audit: Audit, record: str) -> list[Block]:
    """What people read."""
    linked, complete, seen = audit.words
    blocks: list[Block] = [Heading(f"The record {record}")]
    last = f"the last of {words.moment(audit.last_at)}" if audit.last_at else "none was recorded yet"
    blocks.append(Facts([("events", f"{audit.events} of {audit.runs} runs, {last}")]))
    blocks += [
        _word(linked, "every event is there, unchanged and in its place", good=audit.linked),
        _word(complete, _complete(audit), good=audit.complete),
        *told(f"{seen}: {_witnessed(audit)}", "good" if audit.witnessed else "warning"),
    ]
    blocks += [Line(_open_words(run), "warning") for run in audit.open_runs]
    for armed in audit.unasked if audit.witnesses.heads or audit.witnesses.silent else ():
        text = f"run {armed.run} armed {armed.host} (event {armed.sequence}), which was not asked"
        blocks.append(Line(text, "warning"))
    if audit.findings:
        blocks.append(Heading("Findings", 2))
        blocks += [Line(f"{finding.problem}: {finding.message}", "bad") for finding in audit.findings]
    return blocks


def _word(word: str, meaning: str, *, good: bool) -> Line:
    return Line(f"{word}: {meaning if good else 'see the findings'}", "good" if good else "bad")


def _complete(audit: Audit) -> str:
    kept = f"{audit.blobs} pieces of evidence and {audit.snapshots} saved configurations are there, unchanged"
    return f"what every closed run began has its outcome; {kept}"


def _witnessed(audit: Audit) -> str:
    head = audit.witnessed
    if head is None:
        asked = audit.witnesses.heads or audit.witnesses.silent
        return "no host that answered knows an event of this chain" if asked else NOT_ASKED
    newer = audit.events - head.sequence
    rest = f"; {newer} newer {'event rests' if newer == 1 else 'events rest'} on the chain alone" if newer > 0 else ""
    return f"{head.host} was told it when run {head.run} was {head.what}{rest}"


def _asked_at(witnesses: Witnesses) -> int | None:
    known = [witnesses.asked_at[host] for host in witnesses.heads if host in witnesses.asked_at]
    return min(known) if known and len(known) == len(witnesses.heads) else None


def _open_json(run: RunAccount) -> dict[str, Any]:
    begun = [
        {"event": intent.sequence, "step": intent.step, "action": intent.action, "host": intent.host}
        for intent in run.begun
    ]
    return {"run": run.run, "begun": begun}


def _open_words(run: RunAccount) -> str:
    begun = ", ".join(str(intent) for intent in run.begun)
    rest = f"; begun, without an outcome so far: {begun}" if begun else ""
    return f"run {run.run} goes on or was cut off: its end is not recorded{rest}"
