"""The saved files are brought back: by the dead-man, at boot, or by hand; recorded before, and all others shut out."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

from . import lease, manager, records, snapshot
from .failure import Failure, from_os_error
from .state import FORMAT, Run, boot_id, boot_seconds, save_json, timestamp

Record = Dict[str, Any]
_STOP = 60.0  # seconds that a service gets to end where nothing tells how long it may take


def service_of(run: Run, armed: Optional[Record]) -> Record:
    """How the service is stopped and started, {manager, service}: as it was armed, else as the snapshot tells.

    Empty: nothing here tells it.
    """
    if armed is not None and armed.get("service"):
        return {"manager": armed["manager"], "service": {**armed["service"], "reset_failed": True}}
    managed = snapshot.manifest(run).get("manager")
    if not managed:
        return {}
    name, _ = manager.read(managed)
    settings: Record = {"stop_timeout": _STOP, "reset_failed": True, "daemon_reload": name == "systemd"}
    if name == "command":
        settings["environment_from_snapshot"] = os.path.exists(run.path("snapshot", "process.json"))
    return {"manager": managed, "service": settings}


def begin(run: Run, by: str, armed: Optional[Record]) -> Record:
    """End the run's lease, shut out every call of a generation seen so far, and record what begins; returns the record.

    Needs the host lock and the lease lock. `tries` counts the beginnings of one and the same way back.
    """
    records.free_reserve(run)
    lease.expire(run, 0)
    held = lease.present() or {}
    before = records.fired(run) or {}
    seen = [item.get("generation") for item in (run.header(), armed or {}, before)]
    seen += [held.get("generation")] if held and lease.is_of(held, run) else []
    generation = max([number for number in seen if isinstance(number, int)], default=0) + 1
    save_json(run.path("run.json"), {"format": FORMAT, "run": run.name, "generation": generation})
    run.generation = generation
    lease.expire(run, generation)
    return _record(run, by, (armed or {}).get("nonce"), before)


def _record(run: Run, by: str, nonce: Any, before: Record) -> Record:
    again = (before.get("nonce"), before.get("by"), before.get("state")) == (nonce, by, "acting")
    record: Record = {"at": timestamp(), "boot": boot_id(), "boot_seconds": boot_seconds()}
    if again:
        record = {name: before[name] for name in record}
    tries = 1 + (before["tries"] if again else 0)
    record.update(by=by, nonce=nonce, generation=run.generation, state="acting", tries=tries)
    records.save(run, records.FIRED, record)
    return record


def end(run: Run, record: Record, answer: Record) -> Record:
    """Record that the saved files are back; `answer` is what the call said that brought them."""
    outcome = "restored" if answer.get("changed") else "nothing_to_do"
    facts = {name: answer.get(name) for name in ("files", "started_pid")}
    ended = {**record, "state": "done", "outcome": outcome, "ended_at": timestamp(), **facts}
    records.save(run, records.FIRED, ended)
    run.record("fired", by=record["by"], outcome=outcome, nonce=record["nonce"])
    return ended


def fail(run: Run, record: Record, error: Union[Failure, OSError], final: bool) -> Record:
    """Record that it failed; it stays armed. `final`: nobody tries again by himself."""
    failure = error if isinstance(error, Failure) else from_os_error(error, "bringing the saved files back")
    told = {"outcome": "failed", "detail": failure.message, "reason": failure.reason, **failure.details}
    failed = {**record, **told, "state": "done" if final else "acting"}
    records.save(run, records.FIRED, failed)
    return failed
