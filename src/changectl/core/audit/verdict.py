"""The verdict on a record: linked, complete, witnessed up to an event. Three words, since each says something else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from changectl.core.audit.chain import Finding
from changectl.core.audit.journal import Account, Armed, RunAccount
from changectl.core.audit.witness import Head, Witnesses, hear

# What keeps a journal from being one unbroken chain of what was recorded.
UNLINKED = frozenset({"missing_event", "broken_link", "changed_event", "malformed_event", "damaged_database"})
# What says nothing about the record's content: its guards, and who could not be asked.
BESIDE = frozenset({"guard_missing", "readable_by_others", "host_silent", "not_witnessed"})


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found, and what may be said.

    Attributes:
        events: how many events the journal holds.
        last_at: the time of the newest; None: there is none.
        runs: all runs that were opened.
        open_runs: those whose end is not recorded: they go on, or were cut off.
        blobs: how many pieces of evidence the journal names.
        snapshots: how many saved configurations it names.
        findings: what is wrong.
        linked: every event is there, unchanged and in its place.
        complete: linked, and every closed run is told to its end, and all that it refers to is there.
        witnessed: the newest head that a host knows and that is in the chain.
        witnesses: the hosts that were asked.
        unasked: what is said to be armed on hosts that were not asked.
    """

    events: int
    last_at: str | None
    runs: int
    open_runs: tuple[RunAccount, ...]
    blobs: int
    snapshots: int
    findings: tuple[Finding, ...]
    linked: bool
    complete: bool
    witnessed: Head | None
    witnesses: Witnesses
    unasked: tuple[Armed, ...]

    @property
    def words(self) -> tuple[str, str, str]:
        """The verdict, word by word."""
        seen = f"witnessed up to event {self.witnessed.sequence}" if self.witnessed else "not witnessed"
        return "linked" if self.linked else "not linked", "complete" if self.complete else "not complete", seen

    @property
    def exit_code(self) -> int:
        """0 sound as far as was checked, 3 findings."""
        return 3 if self.findings else 0


def judge(account: Account, kept: Iterable[Finding], witnesses: Witnesses) -> Audit:
    """The verdict on a record.

    Args:
        account: its journal, read after the witnesses were asked.
        kept: what is wrong with the database as such and with the bytes beside it.
        witnesses: the hosts that were asked.
    """
    own = [*account.findings(), *kept]
    testimony = hear(account, witnesses, _first_break(own))
    findings = (*own, *testimony.findings)
    problems = {finding.problem for finding in findings}
    opened = [run for run in account.runs.values() if run.opened]
    return Audit(
        events=len(account.hashes),
        last_at=account.last.at if account.last else None,
        runs=len(opened),
        open_runs=tuple(run for run in opened if not run.closed),
        blobs=_count(account, "blob"),
        snapshots=_count(account, "snapshot"),
        findings=findings,
        linked=not problems & UNLINKED,
        complete=not problems - BESIDE,
        witnessed=testimony.newest,
        witnesses=witnesses,
        unasked=testimony.unasked,
    )


def _first_break(findings: Sequence[Finding]) -> int | None:
    return min((finding.sequence for finding in findings if finding.problem in UNLINKED), default=None)


def _count(account: Account, kept: str) -> int:
    return sum(reference.kept == kept for reference in account.references)
