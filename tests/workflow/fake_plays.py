"""What our plays do to a host in memory: as the real ones, they stop the service, and refuse an older generation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from changectl.core.errors import HostCallError
from changectl_host import part

if TYPE_CHECKING:
    from tests.workflow.fake_host import FakeHost


def play(host: FakeHost, name: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Do it; returns the module's answers."""
    assert given["changectl_manager"] == {"systemd": {"unit": host.unit}}
    assert given["changectl_lock_wait"] >= given["changectl_service"]["stop_timeout"] + 30
    run = given["changectl_run"]
    fence(host, run, given["changectl_generation"])
    host.keeper.require(host.name, run, given["changectl_generation"])
    armed = host.keeper.arm(host.name, run, given.get("changectl_arm"))
    return [{**_act(host, name, run, given), **({} if armed is None else {"arm": armed})}]


def _act(host: FakeHost, name: str, run: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if name == "apply":
        _write_all(host, run, given["changectl_writes"])
    if name == "restore":
        return bring_back(host, run, given.get("changectl_only") or list(host.saved[run]))
    host.restart()
    return _answer(host)


def fence(host: FakeHost, run: str, generation: int) -> None:
    """Raises HostCallError where somebody took the run over."""
    if host.generations.get(run, 0) > generation:
        raise HostCallError(f"{host.name}: run {run} was taken over", reason="stale_generation")
    host.generations[run] = generation


def _answer(host: FakeHost) -> dict[str, Any]:
    started = host.process.pid if host.process else 0
    return {"changed": True, "started_pid": started, "start": {"log_cursor": str(host.log_end)}}


def _write_all(host: FakeHost, run: str, writes: Sequence[Mapping[str, Any]]) -> None:
    for write in writes:
        present = _sha(host.files[write["path"]])
        if present not in (write["staged"], write["expect"]):
            raise _changed_by_other(host, write["path"], written=False)
        host.files[write["path"]] = host.staged[write["staged"]]
        host.written.setdefault(run, set()).add(write["staged"])
        host.wrote[run, write["path"]] = host.staged[write["staged"]]
        host.stale = True


def bring_back(host: FakeHost, run: str, only: Sequence[str]) -> dict[str, Any]:
    """Stop, restore, start; nothing where the service runs on the saved files already."""
    saved = host.saved[run]
    try:
        _check(host, run, only)
        equal = all(host.files[path] == saved[path] for path in only)
        if equal and not host.stale and host.process is not None:
            return {"changed": False}
        host.stop()
        _check(host, run, only)
        for path in only:
            host.files[path] = back(host, run, path)
    except HostCallError:
        if host.process is None:
            host.start()
        raise
    host.start()
    return _answer(host)


def _check(host: FakeHost, run: str, only: Sequence[str]) -> None:
    for path in only:
        back(host, run, path)


def back(host: FakeHost, run: str, path: str) -> bytes:
    """What a file holds after the way back: the saved bytes, or with somebody else's edit only our part taken out."""
    present, saved = host.files[path], host.saved[run][path]
    if present == saved or _sha(present) in host.written.get(run, ()):
        return saved
    new = host.wrote.get((run, path))
    standing = part.LOST if new is None else part.standing(saved, new, present)
    if new is None or standing == part.LOST:
        raise _changed_by_other(host, path)
    return part.put_back(saved, new, present) if standing == part.IN_FORCE else present


def _changed_by_other(host: FakeHost, path: str, **details: Any) -> HostCallError:
    return HostCallError(f"{host.name}: {path} holds other bytes", reason="changed_by_other", details=details)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
