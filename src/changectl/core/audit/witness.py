"""What hosts witness: the journal's heads that were left with them when a dead-man was armed and disarmed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from changectl.core.audit.chain import Finding
from changectl.core.audit.journal import Account, Armed
from changectl.core.declared.traffic_spec import OF_UPSTREAM
from changectl.core.errors import InputError, Problem
from changectl.core.history.events import text_of

_STEP = re.compile(r"([./]\d+)+$")  # and the instance of it, on the host of a balancer
_SHAPE = '{"hosts": {"NAME": [{"at", "run", "what", "sequence", "hash"}, ...]}}'


@dataclass(frozen=True, slots=True)
class Head:
    """The journal's newest event at a moment, as a host remembers it."""

    host: str
    run: str  # as the host names it: RUN, or RUN.STEP
    what: str  # armed or disarmed
    at: str  # by the host's clock
    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The hosts that were asked.

    Attributes:
        heads: of each host that answered.
        silent: the hosts that were asked in vain, each with the reason.
        asked_at: the journal's newest event when a host was asked, where that is known: it cannot know what came later.
    """

    heads: Mapping[str, Sequence[Head]] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    asked_at: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Witnesses) -> Witnesses:
        hosts = {*self.heads, *other.heads}
        heads = {host: (*self.heads.get(host, ()), *other.heads.get(host, ())) for host in sorted(hosts)}
        return Witnesses(heads, {**self.silent, **other.silent}, {**self.asked_at, **other.asked_at})

    def all(self) -> list[Head]:
        """Every head, whoever knows it."""
        return [head for heads in self.heads.values() for head in heads]


@dataclass(frozen=True, slots=True)
class Testimony:
    """What the hosts' knowledge means for a journal."""

    findings: tuple[Finding, ...]
    newest: Head | None  # the newest head that is in the chain, and before its first break
    unasked: tuple[Armed, ...]  # armed by what the journal says, on hosts that nobody asked


def read_heads(host: str, answer: Any) -> tuple[Head, ...]:
    """The heads in a host's answer, or in a file. A head that names no event witnesses nothing, and is left out.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(answer, list) or not all(isinstance(item, Mapping) for item in answer):
        raise InputError(Problem(f"the heads of {host} are no list of objects", hint=f"write {_SHAPE}"))
    heads = []
    for item in answer:
        sequence, digest = item.get("sequence"), item.get("hash")
        if sequence is None and digest is None:
            continue
        if not isinstance(sequence, int) or isinstance(sequence, bool) or not isinstance(digest, str):
            raise InputError(Problem(f"a head of {host} has no sequence and hash", hint=f"write {_SHAPE}"))
        run, what, at = (text_of(item, name) for name in ("run", "what", "at"))
        heads.append(Head(host, run, what, at, sequence, digest))
    return tuple(heads)


def read_document(document: Any) -> Witnesses:
    """The heads in a file: the document of `audit verify --hosts --json`, or one made by hand. Raises InputError."""
    hosts = document.get("hosts") if isinstance(document, Mapping) else None
    if not isinstance(hosts, Mapping):
        raise InputError(Problem("there are no witnessed heads in it", hint=f"write {_SHAPE}"))
    heads = {str(host): read_heads(str(host), answer) for host, answer in hosts.items()}
    at = document.get("asked_at_event")
    return Witnesses(heads, asked_at=dict.fromkeys(heads, at) if isinstance(at, int) else {})


def hear(account: Account, witnesses: Witnesses, first_break: int | None) -> Testimony:
    """Hold what hosts know against the journal.

    Args:
        account: the journal. It has to be read after the hosts were asked: they must not know more than it by then.
        witnesses: the hosts.
        first_break: the event where the chain breaks first; what comes after it is proven by nobody.
    """
    found: list[Finding] = []
    good: list[Head] = []
    for head in witnesses.all():
        finding = _hold(account, head)
        if finding is None:
            good.append(head)
        else:
            found.append(finding)
    found += [
        Finding("host_silent", f"host {host} could not be asked: {why}") for host, why in witnesses.silent.items()
    ]
    known = {head.run for head in witnesses.all()}
    unasked = []
    for armed in account.armed:
        if armed.names & known:
            continue
        hosts = _who_should_know(account, armed, witnesses)
        if hosts is None:
            unasked.append(armed)
        elif hosts:
            where = " and ".join(hosts)
            text = f"run {armed.run} says that the dead-man was armed, of which {where} knows nothing"
            found.append(Finding("not_witnessed", text, armed.sequence))
    usable = [head for head in good if first_break is None or head.sequence < first_break]
    newest = max(usable, key=lambda head: head.sequence, default=None)
    return Testimony(tuple(found), newest, tuple(unasked))


def _hold(account: Account, head: Head) -> Finding | None:
    last = account.last.sequence if account.last else 0
    told = f"host {head.host} was told event {head.sequence} when run {head.run} was {head.what or 'there'}"
    if head.sequence == 0 or account.hashes.get(head.sequence) == head.hash:
        return None
    if head.run not in account.runs and _STEP.sub("", head.run) not in account.runs:
        text = f"{told}, a run that is not in this journal: it was taken out, or another controller works on this host"
        return Finding("unknown_run", text, head.sequence)
    if head.sequence > last:
        text = f"{told}, and the journal ends with event {last}: what came after is gone"
        return Finding("lines_gone", text, head.sequence)
    return Finding("rewritten", f"{told}, and it was another one then: the journal was rewritten", head.sequence)


def _who_should_know(account: Account, armed: Armed, witnesses: Witnesses) -> list[str] | None:
    """The hosts that should know of an arming and do not; None: they were not asked.

    Of an upstream that is its balancer's host, which need not be one of the run's. An instance may be named otherwise
    than its host; then all hosts of the run count. A host is not expected to know what was forgotten long ago (older
    than all that it remembers), nor what came after it was asked.
    """
    host, upstream, _ = armed.host.partition(OF_UPSTREAM)
    hosts = [host] if upstream or host in witnesses.heads else list(account.runs[armed.run].hosts)
    if not hosts or not all(host in witnesses.heads for host in hosts):
        return None
    return hosts if all(_spans(witnesses, host, armed.sequence) for host in hosts) else []


def _spans(witnesses: Witnesses, host: str, sequence: int) -> bool:
    known = [head.sequence for head in witnesses.heads[host]]
    return min(known, default=0) <= sequence <= witnesses.asked_at.get(host, max(known, default=0))
