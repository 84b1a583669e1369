"""The way back: restore, start, and prove that what was saved is what runs again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.observed import Model, Observed
from changectl.workflow.conditions import VOLATILE
from changectl.workflow.hold import Hold
from changectl.workflow.ready import NotReady, Ready

REVERTED = "reverted"
UNVERIFIED = "revert_unverified"
FAILED = "revert_failed"


@dataclass(frozen=True)
class Restored:
    """How the way back ended."""

    outcome: str  # reverted, revert_unverified or revert_failed
    detail: str


def collect_evidence(hold: Hold, why: str) -> None:
    """Keep logs, metrics and host figures of the failed attempt; a gap in them never stops the way back."""
    try:
        args = {"manager": hold.target.manager_argument, "since": time.time() - 3600,
                "cursor": hold.log_cursor, "log_file": hold.target.service.log_file}  # fmt: skip
        found = hold.target.ask("evidence", args)
        pages = hold.target.pages(answer=False)
        text = _text(why, found, {name: page.body for name, page in pages.items()})
        clean = hold.tools.secrets.redactor.text(text)
        digest = hold.tools.records.put_blob(clean.encode())
        hold.recorder.note("evidence.outcome", {"host": hold.target.name, "ok": True, "blob": digest})
    except Exception as error:  # noqa: BLE001 - whatever it is, the way back matters more
        hold.recorder.note("evidence.outcome", {"host": hold.target.name, "ok": False, "message": str(error)})


def bring_back(hold: Hold) -> Restored:
    """Restore the saved configuration and prove it; whatever goes wrong is an outcome, never an exception."""
    target = hold.target
    try:
        hold.restore()
    except Exception as error:  # noqa: BLE001 - every way to fail is an outcome that a person has to hear of
        return Restored(FAILED, f"{target.name}: the saved configuration could not be restored: {error}")
    try:
        ready = hold.wait()
    except Exception as error:  # noqa: BLE001 - as above
        return Restored(UNVERIFIED, f"{target.name}: restored, but it cannot be watched: {error}")
    if isinstance(ready, NotReady):
        return _prove(hold, None, [f"it does not answer: {ready.text}"])
    return _prove(hold, ready, [])


def left_alone(hold: Hold, *, edited_by_other: bool) -> bool:
    """Whether a refused write is proven to have changed nothing: the same process as before, answering, equal files.

    Args:
        hold: the instance.
        edited_by_other: the file that was to be written holds what somebody else wrote meanwhile; that stays.
    """
    target, skipped = hold.target, hold.edit_path if edited_by_other else None
    try:
        with hold.recorder.acting("verify", {"host": target.name}) as outcome:
            saved, present = hold.observed, target.inspect()
            files = {path: _same_file(saved, present, path) for path in saved.files if path != skipped}
            now = present.process
            process = now is not None and (now.pid, now.start_ticks) == hold.running
            ready = target.engine.readiness(target.pages(), target.service.model.name)
            proven = all(files.values()) and process and ready.state == "ready"
            missing = [] if proven else ["the service is not as it was before the refused write"]
            outcome.update(host=target.name, files=files, process=process, verified=proven, missing=missing)
    except Exception:  # noqa: BLE001 - a proof that cannot be taken is none; the way back follows
        return False
    return proven


def _same_file(saved: Observed, present: Observed, path: str) -> bool:
    old, new = saved.files.get(path), present.files.get(path)
    return old is not None and new is not None and (old.exists, old.sha256) == (new.exists, new.sha256)


def _prove(hold: Hold, ready: Ready | None, missing: list[str]) -> Restored:
    target = hold.target
    proof: dict[str, Any] = {"host": target.name}
    try:
        with hold.recorder.acting("verify", {"host": target.name}) as outcome:
            missing = missing + verify(hold, proof, compare_process=ready is not None)
            outcome.update(proof, missing=missing, verified=not missing)
    except Exception as error:  # noqa: BLE001 - a proof that cannot be taken is none
        missing = [*missing, f"the proof could not be taken: {error}"]
    if missing:
        return Restored(UNVERIFIED, f"{target.name}: restored, but not proven: {'; '.join(missing)}")
    return Restored(REVERTED, f"{target.name}: the saved configuration is back and answers")


def verify(hold: Hold, proof: dict[str, Any], *, compare_process: bool = True) -> list[str]:
    """Compare the host with the snapshot; returns what is not as it was, in sentences.

    Raises:
        HostCallError, ContactLost: the host could not be asked.
    """
    target = hold.target
    files: Mapping[str, Any] = target.ask("verify", hold.host_run)["files"]
    wrong = [f"{path} differs in {', '.join(entry['differs'])}" for path, entry in files.items() if not entry["equal"]]
    proof["files"] = {path: entry["equal"] for path, entry in files.items()}
    if not files:
        wrong.append("the snapshot holds no file to compare")
    observed = target.inspect()
    if compare_process:
        wrong += _running(hold, observed, proof)
    wrong += _model(hold, proof)
    return wrong


def _running(hold: Hold, observed: Observed, proof: dict[str, Any]) -> list[str]:
    old, new = hold.observed.process, observed.process
    if old is None or new is None:
        return ["no running process to compare"]
    wrong = []
    if old.argv != new.argv:
        wrong.append("the process runs with other arguments than before")
    names = [{name: value for name, value in (process.environ or {}).items() if name not in VOLATILE}
             for process in (old, new)]  # fmt: skip
    differing = sorted(name for name in {*names[0], *names[1]} if names[0].get(name) != names[1].get(name))
    if differing:
        wrong.append(f"variables of the process differ: {', '.join(differing)}")
    proof["process"] = not wrong
    return wrong


def _model(hold: Hold, proof: dict[str, Any]) -> list[str]:
    """The same files, sizes, times and header digests as in the manifest that was taken before the change."""
    before = hold.model
    known = {file.path: [file.size, file.mtime_ns, file.sha256] for file in before.files}
    now = hold.target.model(hold.observed.process, known)
    wrong = [f"model file {problem.path}: {problem.problem}" for problem in now.problems]
    wrong += _moved_files(before, now)
    proof["model"] = not wrong
    return wrong


def _moved_files(before: Model, now: Model) -> list[str]:
    old = {file.path: (file.size, file.sha256) for file in before.files}
    new = {file.path: (file.size, file.sha256) for file in now.files}
    return [f"model file {path} is not the one before the change" for path in sorted({*old, *new})
            if old.get(path) != new.get(path)]  # fmt: skip


def _text(why: str, found: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    parts = [f"# why\n{why}", "# log", *map(str, found.get("log", [])), "# host", repr(dict(found.get("host", {})))]
    parts += [f"# page {name}\n{body}" for name, body in pages.items()]
    return "\n".join(parts)
