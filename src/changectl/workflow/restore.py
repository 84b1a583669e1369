"""The way back: restore, start, and prove that what was saved is what runs again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.errors import ContactLost, HostCallError
from changectl.core.observed import Observed
from changectl.workflow.hold import Hold
from changectl.workflow.proof import is_final, verify
from changectl.workflow.ready import Deadline, NotReady, Ready
from changectl.workflow.traffic import back_if_possible, out_if_possible

REVERTED = "reverted"
UNVERIFIED = "revert_unverified"
FAILED = "revert_failed"
PAGE_WITHIN = 1.0  # seconds that a page of a failed attempt may take: the way back waits meanwhile
LOG_BEFORE = 3600.0  # seconds of log that are kept where the log's end before the change is not known
AS_SICK = Deadline(60.0, "no longer, since the service did not answer before the change either")
SHUT_OUT = ("stale_generation", "lease_lost", "no_lease")  # a host's words for: somebody took the run over meanwhile
TRIES = 3  # times that the run is taken over from whoever that was
LEFT = "left_to_host"  # no outcome yet: the host's dead-man restores it, and `recover` proves that


@dataclass(frozen=True)
class Restored:
    """How the way back ended."""

    outcome: str  # reverted, revert_unverified, revert_failed or left_to_host
    detail: str
    still_out: str = ""  # a sentence, also part of the detail, where the instance could not be put back into service


def collect_evidence(hold: Hold, why: str) -> None:
    """Keep logs, metrics and host figures of the failed attempt; a gap is named, and never stops the way back."""
    if hold.evidence_kept:
        return  # what runs is the saved configuration: its log says nothing about the change
    body: dict[str, Any] = {"host": hold.target.name}
    try:
        missing: dict[str, str] = {}
        found = _host_evidence(hold, missing)
        pages = _page_evidence(hold, missing)
        text = _text(why, found, pages, missing)
        clean = hold.tools.secrets.redactor.text(text)
        digest = hold.tools.records.put_blob(clean.encode())
        clean_gaps = {name: hold.tools.secrets.redactor.text(gap) for name, gap in missing.items()}
        hold.recorder.note("evidence.outcome", {**body, "ok": True, "blob": digest, "missing": clean_gaps})
    except Exception as error:  # noqa: BLE001 - whatever it is, the way back matters more
        hold.recorder.note("evidence.outcome", {**body, "ok": False, "message": str(error)})


def _host_evidence(hold: Hold, missing: dict[str, str]) -> Mapping[str, Any]:
    target = hold.target
    try:
        # By the host's own clock: the controller's may be hours away.
        now = target.status().now if hold.log_cursor is None else None
        since = None if now is None else now - LOG_BEFORE
        args = {"manager": target.manager_argument, "since": since, "cursor": hold.log_cursor,
                "log_file": target.service.log_file, "run": hold.host_run_name}  # fmt: skip
        found = target.ask("evidence", args)
    except Exception as error:  # noqa: BLE001 - the pages may still answer
        missing["host"] = missing["log"] = str(error)
        return {}
    missing |= found.get("missing", {})
    # A command service without a log file logs to a new file of its last start: there is nothing older in it.
    if hold.log_cursor is None and (target.service.log_file or target.service.manager.name != "command"):
        missing["log_since"] = "where the log ended before the change is not known: its latest lines are kept"
    return found


def _page_evidence(hold: Hold, missing: dict[str, str]) -> dict[str, str]:
    try:
        pages = hold.target.pages(answer=False, within=PAGE_WITHIN)
    except Exception as error:  # noqa: BLE001 - the host's figures are worth keeping without them
        missing["pages"] = str(error)
        return {}
    missing |= {f"page {name}": page.error for name, page in pages.items() if page.error}
    return {name: page.body for name, page in pages.items() if not page.error}


def bring_back(hold: Hold) -> Restored:
    """Restore the saved configuration, prove it and disarm; whatever goes wrong is an outcome, never an exception.

    A host that does not answer is asked again for the length of its lease; after that it is left to its dead-man. Where
    the dead-man or the boot was faster, or somebody by hand, the run is taken over from them, and what they did proven.
    """
    until, shut_out = hold.lease.patience(), 0
    while True:
        try:
            return _bring_back(hold)
        except HostCallError as error:
            shut_out += 1
            if shut_out > TRIES:
                return _not_restored(hold, error)
        except ContactLost as error:
            if hold.lease.wait_for_contact(error, until):
                continue
            hold.lease.stop_beating()
            return _out_of_reach(hold, error)


def _out_of_reach(hold: Hold, error: ContactLost) -> Restored:
    name = hold.target.name
    if hold.lease.armed is False:
        return Restored(FAILED, f"{name}: the saved configuration could not be restored: {error}")
    text = f"{name} does not answer, and its dead-man restores the saved configuration there"
    return Restored(LEFT, f"{text}, unless the host has another decision on record ({error})")


def _not_restored(hold: Hold, error: Exception) -> Restored:
    return Restored(FAILED, f"{hold.target.name}: the saved configuration could not be restored: {error}")


def _bring_back(hold: Hold) -> Restored:
    target = hold.target
    out_if_possible(hold)
    try:
        hold.restore()
    except ContactLost:
        raise
    except Exception as error:
        if isinstance(error, HostCallError) and error.reason in SHUT_OUT and not hold.restored:
            raise
        if not hold.restored:
            return _not_restored(hold, error)
        return Restored(UNVERIFIED, f"{target.name}: restored, but that could not be recorded: {error}")
    try:
        hold.find_log_end()
        ready = hold.wait(AS_SICK if hold.sick else None)
    except ContactLost:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        return Restored(UNVERIFIED, f"{target.name}: restored, but it cannot be watched: {error}")
    end = _prove(hold, ready)
    if end.outcome == REVERTED:
        still_out = back_if_possible(hold)
        end = replace(end, detail=end.detail + still_out, still_out=still_out)
        hold.stand_down()
    return end


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
            alive = process and ready.state == "ready"  # in a sick state processes come and go, and nothing answers
            proven = all(files.values()) and (alive or bool(hold.sick))
            missing = [] if proven else ["the service is not as it was before the refused write"]
            outcome.update(host=target.name, files=files, process=process, verified=proven, missing=missing)
    except Exception:  # noqa: BLE001 - a proof that cannot be taken is none; the way back follows
        return False
    return proven


def _same_file(saved: Observed, present: Observed, path: str) -> bool:
    old, new = saved.files.get(path), present.files.get(path)
    return old is not None and new is not None and (old.exists, old.sha256) == (new.exists, new.sha256)


def _prove(hold: Hold, ready: Ready | NotReady) -> Restored:
    target, answers = hold.target, isinstance(ready, Ready)
    proof: dict[str, Any] = {"host": target.name, **({"sick": hold.sick, "answers": answers} if hold.sick else {})}
    missing = [] if isinstance(ready, Ready) or hold.sick else [f"it does not answer: {ready.text}"]
    try:
        with hold.recorder.acting("verify", {"host": target.name}) as outcome:
            # Of a service that did not run there is no process that another one could be compared with.
            compare = answers if not hold.sick else hold.observed.process is not None
            missing = missing + verify(hold, proof, compare_process=compare)
            outcome.update(proof, missing=missing, verified=not missing)
    except ContactLost:
        raise
    except Exception as error:  # noqa: BLE001 - a proof that cannot be taken is none
        missing = [*missing, f"the proof could not be taken: {error}"]
    if missing:
        text = f"{target.name}: restored, but not proven: {'; '.join(missing)}"
        return Restored(UNVERIFIED, f"{text}{_no_further(hold) if answers and is_final(proof) else ''}")
    return Restored(REVERTED, f"{target.name}: the saved configuration is back and {_told(hold, ready)}")


def _no_further(hold: Hold) -> str:
    """What a person has to know before trying the same once more."""
    run = hold.host_run_name.rpartition(".")[0]
    return (
        ". Every saved file is back and it answers, so another revert would find the same: see what starts the process "
        f"otherwise, or accept what is there: changectl revert {run} --accept-present --reason TEXT"
    )


def _told(hold: Hold, ready: Ready | NotReady) -> str:
    """Whether it answers; where it does not, that it did not before the change either, and how it was."""
    if isinstance(ready, Ready):
        return f"answers (before the change {hold.sick})" if hold.sick else "answers"
    return f"was started. It does not answer ({ready.text}), and did not before the change: {hold.sick}"


def _text(why: str, found: Mapping[str, Any], pages: Mapping[str, str], missing: Mapping[str, str]) -> str:
    parts = [f"# why\n{why}", "# log", *map(str, found.get("log", [])), "# host", repr(dict(found.get("host", {})))]
    parts += [f"# page {name}\n{body}" for name, body in pages.items()]
    parts += [f"# missing {name}\n{why_missing}" for name, why_missing in missing.items()]
    return "\n".join(parts)
