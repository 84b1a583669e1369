"""The independent judge of a fault: what became of the service, by what the host and the journal themselves say.

Standard library only, and nothing of changectl: a judge who asks the accused learns nothing.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.faults.told import Told

OBSERVER = Path(__file__).with_name("observe.py")
LOOK_TIMEOUT = 60.0  # seconds; a look asks for a real answer, which a hanging engine refuses slowly
CLOCK_GRAIN = 0.05  # seconds: a process's start is counted in hundredths, a file's change by the kernel's tick
METADATA = ("uid", "gid", "mode", "xattrs", "place")
IN_FORCE = ("kept", "kept_unjudged")
BACK = ("reverted", "refused", "aborted")
#: Exit codes that say: the change is not in force. 6, 9 and a kill say nothing for certain.
NOT_IN_FORCE = (1, 3, 4, 5, 130)


class Word(StrEnum):
    """What became of the service."""

    RESTORED = "restored"
    KEPT = "kept"
    UNKNOWN = "unknown"
    HALF = "half"


@dataclass(frozen=True)
class Judged:
    """The word, and why."""

    word: Word
    reasons: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the promise was kept: the saved configuration, or a change that was judged."""
        return self.word in (Word.RESTORED, Word.KEPT)

    def __str__(self) -> str:
        return f"{self.word}: {'; '.join(self.reasons)}" if self.reasons else str(self.word)


@dataclass(frozen=True)
class Reach:
    """How to look at a host: `prefix` is what comes before a command there (`ssh ...`, `nsenter ...`), if anything."""

    question: Mapping[str, Any]
    prefix: Sequence[str] = ()
    python: str = "python3"

    def look(self) -> dict[str, Any]:
        """Everything that is so there now. Raises RuntimeError when the host cannot be looked at."""
        command = [*self.prefix, self.python, "-", json.dumps(dict(self.question))]
        done = subprocess.run(
            command, input=OBSERVER.read_bytes(), capture_output=True, timeout=LOOK_TIMEOUT, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"the host cannot be looked at: {done.stderr.decode(errors='replace')[-500:]}")
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen


@dataclass(frozen=True)
class Expected:
    """The two configurations that may be in force.

    Attributes:
        saved: what a look said before the run.
        new: file -> SHA-256 of what the plan would write there.
        new_argv: the engine's command line on the new configuration.
        new_environ: its variables on the new configuration, where they are part of it.
    """

    saved: Mapping[str, Any]
    new: Mapping[str, str]
    new_argv: Sequence[str]
    new_environ: Mapping[str, str | None] = field(default_factory=dict)


def judge(expected: Expected, seen: Mapping[str, Any], told: Told, exit_code: int | None, *, final: bool) -> Judged:
    """Say what became of the service.

    Args:
        expected: the two configurations that may be in force.
        seen: what a look says now.
        told: what the journal says now.
        exit_code: of the command that was disturbed; None or negative: it was killed.
        final: after `recover`: then the journal has to have an end for the run.
    """
    saved, new = _differs_from_saved(expected, seen), _differs_from_new(expected, seen)
    down = _down(seen)
    if down or (saved and new):
        return Judged(Word.HALF, (*down, *(f"not the saved one: {why}" for why in saved),
                                  *(f"not the new one: {why}" for why in new)))  # fmt: skip
    word = Word.KEPT if saved else Word.RESTORED
    doubts = (*_doubts(word, seen, told, exit_code), *(_unsettled(word, told) if final else ()))
    return Judged(Word.UNKNOWN, (f"the host says {word}", *doubts)) if doubts else Judged(word)


def _down(seen: Mapping[str, Any]) -> tuple[str, ...]:
    """Why the service does not serve."""
    running = seen["processes"]
    if len(running) != 1:
        return (f"{len(running)} processes of the engine run: {[one['pid'] for one in running]}",)
    if not seen["answer"]["ok"]:
        return (f"no real answer: {seen['answer']['text'] or 'an empty one'}",)
    return ()


def _differs_from_saved(expected: Expected, seen: Mapping[str, Any]) -> list[str]:
    files = expected.saved["files"]
    wrong = [f"{path}: other bytes" for path in files if not _same(files[path], seen["files"][path], ("sha256",))]
    wrong += _metadata(files, seen["files"])
    old = expected.saved["processes"][0]
    return wrong + _process(
        old["argv"], old["environ"], seen, untouched=(old["pid"], old["ticks"]), boot=expected.saved["boot"]
    )


def _differs_from_new(expected: Expected, seen: Mapping[str, Any]) -> list[str]:
    wrong = []
    for path, before in expected.saved["files"].items():
        wanted = expected.new.get(path, before.get("sha256"))
        if seen["files"][path].get("sha256") != wanted:
            wrong.append(f"{path}: other bytes")
    wrong += _metadata(expected.saved["files"], seen["files"])
    environ = {**expected.saved["processes"][0]["environ"], **expected.new_environ}
    return wrong + _process(expected.new_argv, environ, seen)


def _metadata(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [f"{path}: another {name}" for path in before for name in METADATA
            if before[path].get(name) != now[path].get(name)]  # fmt: skip


def _same(before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]) -> bool:
    return all(before.get(name) == now.get(name) for name in ("exists", *names))


def _process(
    argv: Sequence[str],
    environ: Mapping[str, str | None],
    seen: Mapping[str, Any],
    *,
    untouched: tuple[int, int] | None = None,
    boot: str | None = None,
) -> list[str]:
    """Whether the running process was started on these arguments, after the files got their present bytes."""
    if len(seen["processes"]) != 1:
        return ["not one process"]
    process = seen["processes"][0]
    wrong = []
    if list(process["argv"]) != list(argv):
        wrong.append("the process runs with other arguments")
    if dict(process["environ"]) != dict(environ):
        wrong.append("the process runs with other variables")
    if untouched == (process["pid"], process["ticks"]) and boot == seen["boot"]:
        return wrong  # it never was another one
    late = [path for path, facts in seen["files"].items()
            if facts.get("changed", 0.0) > process["started"] + CLOCK_GRAIN]  # fmt: skip
    return wrong + [f"{path} changed after the process had started" for path in late]


def _doubts(word: Word, seen: Mapping[str, Any], told: Told, exit_code: int | None) -> tuple[str, ...]:
    """Where the records do not say what the host is."""
    if told.problem:
        return (told.problem,)
    found, doubts = _host_records(seen, told.run)
    says_kept = told.outcome in IN_FORCE or "kept" in found
    if word is Word.KEPT:
        if not says_kept:
            doubts.append(f"no record says that the change was kept (journal: {told.outcome}, host: {sorted(found)})")
        if told.outcome is not None and told.outcome not in IN_FORCE:
            doubts.append(f"the journal says {told.outcome}")
        if exit_code in NOT_IN_FORCE:
            doubts.append(f"the exit code {exit_code} says that it is not in force")
    else:
        if says_kept:
            doubts.append(f"a record says that the change was kept (journal: {told.outcome}, host: {sorted(found)})")
        if exit_code == 0:
            doubts.append("the exit code 0 says that the change was kept")
    return tuple(doubts)


def _host_records(seen: Mapping[str, Any], run: str | None) -> tuple[set[str], list[str]]:
    """The outcomes that the host's disarm records of this run name, and what is unreadable there."""
    found: set[str] = set()
    doubts: list[str] = []
    for state in seen["records"].values():
        for name, notes in state["runs"].items():
            if run is None or not (name == run or name.startswith((f"{run}.", f"{run}/"))):
                continue
            doubts += [f"{name}/{note}.json: {body['unreadable']}" for note, body in notes.items()
                       if isinstance(body, dict) and "unreadable" in body]  # fmt: skip
            if isinstance(notes.get("disarmed"), dict) and "outcome" in notes["disarmed"]:
                found.add(str(notes["disarmed"]["outcome"]))
    return found, doubts


def _unsettled(word: Word, told: Told) -> tuple[str, ...]:
    """Where the journal, at the very end, does not say what became of the run."""
    if told.run is None or told.problem:
        return ()
    if not told.ended:
        return (f"the journal knows no end of run {told.run}",)
    if word is Word.RESTORED and told.outcome not in BACK:
        return (f"the journal ends with {told.outcome}, though the saved configuration is back",)
    return ()
