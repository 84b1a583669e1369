"""What the reading commands share: opening the record without creating one, finding a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changectl.cli._unfinished import tell_unfinished
from changectl.core.declared.grammar import nearest
from changectl.core.errors import ChangectlError, InputError, Problem, Refused
from changectl.core.history import reading as history
from changectl.core.history.events import MARK
from changectl.core.history.reading import RunStory, RunSummary
from changectl.core.history.saved import SnapshotCopy, kept_copies
from changectl.core.history.selftests import KINDS as SELFTEST_KINDS
from changectl.core.history.selftests import SelfTestRun, selftests
from changectl.core.ports import Event
from changectl.core.redaction.redactor import Redactor
from changectl.core.replaying.ledger import Entry, Ledger
from changectl.core.replaying.ledger_read import KINDS as LEDGER_KINDS
from changectl.core.replaying.ledger_read import ledger
from changectl.core.replaying.replay import RawTrial, raw_trials
from changectl.reports.printer import Printer

if TYPE_CHECKING:
    from changectl.store.locks import Held
    from changectl.store.store import Store


class Record:
    """The record as reading commands see it; one that does not exist yet is an empty one."""

    def __init__(self, store: Store | None) -> None:
        self._store = store

    def runs(self) -> list[RunSummary]:
        """All runs, oldest first."""
        return history.runs(self._events(kinds=history.SUMMARY_KINDS))

    def story(self, text: str) -> tuple[RunStory, int | None]:
        """The run and the step meant by RUN or RUN/STEP, a beginning of RUN being enough. Raises InputError."""
        typed, step = history.split_run(text)
        run = history.resolve_run(typed, self._store.journal.runs() if self._store else [])
        events = self._events(runs=(run,))
        if selftest := next((event for event in events if event.kind in SELFTEST_KINDS), None):
            service = selftest.body.get("service")
            hint = f"it changed nothing; see changectl selftest {service} --last"
            raise InputError(Problem(f"{run} is a selftest of service {service}", hint=hint))
        story = history.run_story(events)
        # What later runs made of it stands in their events.
        known = next((each for each in self.runs() if each.run == run), story.run)
        later = ("extended_by", "reverted_by", "found_back_by", "doubted_by", "settled_by")
        ends = {name: getattr(known, name) for name in later}
        story = replace(story, run=replace(story.run, **ends))
        if step is not None and step > len(story.steps):
            hint = f"it has {len(story.steps)}"
            raise InputError(Problem(f"run {run} has no step {step}", hint=hint))
        return story, step

    def raw_trials(self, text: str) -> tuple[RunSummary, list[RawTrial]]:
        """The run meant by RUN or RUN/STEP, and what its verdicts were made of.

        Raises:
            InputError: there is no such run or step.
            Refused: the journal or the raw records are not what was recorded, or nothing was judged.
        """
        story, step = self.story(text)
        run = story.run
        if self._store is None or (findings := self._store.verify_chain()):
            found = str(findings[0].message) if self._store else "there is none"
            text = f"the record is not sound, so nothing was judged: {found}. All of it: changectl audit verify"
            raise Refused(text, reason="record_changed")
        store = self._store
        trials = raw_trials(run.run, step, store.journal.events, self.runs(), store.records.get_blob)
        return run, trials

    def ledger(self, service: str | None) -> Ledger:
        """Every verdict that said something, with what judged it since."""
        return ledger(self._events(kinds=LEDGER_KINDS), service)

    def last_selftest(self, service: str) -> SelfTestRun | None:
        """The last time that measuring the service was proven, or was to be; None: never."""
        found = selftests(self._events(kinds=SELFTEST_KINDS), service)
        return found[-1] if found else None

    def mark(self, text: str, opinion: str, why: str) -> tuple[Entry, Event]:
        """Record what an operator makes of the verdict of RUN or RUN/STEP; nothing of the run is changed.

        Raises:
            InputError: there is no such run or step, or it has several verdicts.
            Refused: it has not ended, or said nothing that could be right or wrong.
        """
        from changectl.cli.wiring import actor

        story, step = self.story(text)
        run = story.run
        if run.outcome == history.OPEN:
            raise Refused(f"run {run.run} has no end: changectl recover {run.run}", reason="unfinished_run")
        entries = ledger(self._events(runs=(run.run,), kinds=LEDGER_KINDS)).entries
        found = [entry for entry in entries if step in (None, entry.step)]
        if self._store is None or not found:
            told = ", ".join(one.verdict or one.outcome for one in run.steps) or run.outcome
            text = f"{text} said nothing that could be right or wrong ({told})"
            raise Refused(f"{text}: only what was kept, or taken back for harm, can", reason="not_judged")
        if len(found) > 1:
            hint = f"write one of them: {', '.join(entry.name for entry in found)}"
            raise InputError(Problem(f"run {run.run} has {len(found)} verdicts", hint=hint))
        entry = found[0]
        said = {"verdict": entry.verdict, "said": entry.said, "opinion": opinion}
        body = {**said, "why": self._clean(why), "actor": actor()}
        return entry, self._store.journal.append(entry.run, MARK, body, step=entry.step)

    def saved(self, text: str) -> list[SnapshotCopy]:
        """The copies of what was saved before RUN's steps, or before RUN/STEP.

        Raises:
            InputError: there is no such run or step, or it saved nothing.
        """
        story, step = self.story(text)
        copies = kept_copies(story.run.run, self._events(runs=(story.run.run,)), step)
        if not copies:
            hint = "a run saves when its pre-checks passed; a revert uses what the run before it saved"
            raise InputError(Problem(f"{text} saved nothing", hint=hint))
        return copies

    def snapshot(self, digest: str) -> bytes:
        """A copy, decrypted. Raises ChangectlError: it or the key is missing, changed or exposed."""
        if self._store is None:
            raise ChangectlError(f"there is no record, and no copy {digest}", reason="snapshot_missing")
        return self._store.records.get_snapshot(digest)

    def blob(self, digest: str) -> bytes:
        """Kept evidence, checked. Raises ChangectlError: it is missing or changed."""
        if self._store is None:
            raise ChangectlError(f"there is no record, and no evidence {digest}", reason="blob_missing")
        return self._store.records.get_blob(digest)

    def holders(self) -> Mapping[str, bool]:
        """The runs that hold a lock, each with whether its process may be alive."""
        held = self._store.locks.held() if self._store else []
        return {lock.run: alive for lock, alive in held}

    def services(self) -> Sequence[history.ServiceStatus]:
        """Every service that was ever changed."""
        return history.services(self.runs())

    def break_lock(self, service: str, reason: str) -> Held | None:
        """Break a lock, recorded first; returns it, or None when nobody holds it. Raises Refused: its holder lives."""
        from changectl.cli.wiring import actor

        held = self._store.locks.to_break(service) if self._store else None
        if self._store and held:
            body = {"service": service, "run": held.run, "owner": held.owner, "since": held.since,
                    "holder": dataclasses.asdict(held.holder), "reason": self._clean(reason),
                    "actor": actor()}  # fmt: skip
            self._store.journal.append(held.run, history.LOCK_BROKEN, body)
            self._store.locks.release(service, held.run)
        return held

    def _clean(self, text: str) -> str:
        """What a person typed, without what looks like a secret: it stays in the record for good."""
        return text if self._store is None else Redactor((), salt=self._store.redaction_salt()).text(text)

    def _events(self, **which: Any) -> Sequence[Event]:
        return self._store.journal.select(**which) if self._store else []


@contextmanager
def reading() -> Iterator[Record]:
    """The record of the project in the working directory; nothing is created by looking at it.

    Raises:
        InputError: there is no project in the working directory or above it.
    """
    from changectl.adapters.project_files import find_project
    from changectl.cli._places import demand_record
    from changectl.store import open_store

    project = find_project(Path.cwd())
    if not demand_record(project):
        yield Record(None)
        return
    with open_store(Path(project.database), Path(project.key_file)) as store:
        record = Record(store)
        tell_unfinished(record.runs(), record.holders(), Printer())
        yield record


def check_word(what: str, word: str | None, known: Sequence[str]) -> str | None:
    """The word, if it is known or not given. Raises InputError, listing the known ones: a typo is not an empty list."""
    if word is None or word in known:
        return word
    raise InputError(Problem(f'there is no {what} "{word}"', hint=nearest(word, known)))
