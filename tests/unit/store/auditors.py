"""The two ways to the same verdict."""

from __future__ import annotations

from tests.unit.store.records import Record

from changectl.core.audit.verdict import Audit
from changectl.core.audit.witness import Witnesses, read_document
from changectl.store import verifier
from changectl.store.auditing import audit

Found = set[tuple[str, int | None]]  # problem, event
Verdict = tuple[list[str], Found]


def examined(record: Record, *, heads: bool = True) -> Audit:
    return audit(record.path, record.key, read_document({"hosts": record.heads}) if heads else Witnesses())


def by_program(record: Record, *, heads: bool = True) -> Verdict:
    found = examined(record, heads=heads)
    return list(found.words), {(one.problem, one.sequence or None) for one in found.findings}


def by_verifier(record: Record, *, heads: bool = True) -> Verdict:
    document = verifier.verify(str(record.path), witness=str(record.heads_file()) if heads else None)
    return document["verdict"], {(one["problem"], one["event"]) for one in document["findings"]}


def agreed(record: Record, *, heads: bool = True) -> Verdict:
    """The verdict of both, which is one."""
    one, other = by_program(record, heads=heads), by_verifier(record, heads=heads)
    assert one == other
    return one
