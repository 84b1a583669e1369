"""One open change per service: the database itself refuses a second one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from sqlalchemy import Connection
from sqlmodel import col, delete, insert, select

from changectl.core.errors import ChangectlError, Locked, Refused
from changectl.store import tables
from changectl.store.database import Database
from changectl.store.holders import Holder, is_alive, is_dead


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """A lock as it stands in the database."""

    service: str
    run: str
    owner: str
    since: str
    holder: Holder

    def __str__(self) -> str:
        where = f"process {self.holder.pid} on {self.holder.host}"
        return f"run {self.run} of {self.owner} ({where}, since {self.since[:19].replace('T', ' ')} UTC)"


class ServiceLock(AbstractContextManager[Mapping[str, str] | None]):
    """Held inside `with`, which names the dead holder it was taken from (run, owner, since), if there was one."""

    def __init__(self, locks: Locks, service: str, run: str, owner: str) -> None:
        self._locks, self._service, self._run, self._owner = locks, service, run, owner
        self.taken_over: Held | None = None

    def __enter__(self) -> Mapping[str, str] | None:
        self.taken_over = held = self._locks.acquire(self._service, self._run, self._owner)
        return None if held is None else {"run": held.run, "owner": held.owner, "since": held.since}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._locks.release(self._service, self._run)
        except ChangectlError as failure:
            # What happened inside is what counts; and a lock left behind is taken over once this process is gone.
            if error is not None:
                error.add_note(f"the lock of {self._service} could not be given back: {failure}")


class Locks:
    """The `lock` table."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now

    def acquire(self, service: str, run: str, owner: str) -> Held | None:
        """Take the service's lock; returns the dead holder it was taken from, if there was one.

        Raises:
            Locked: a live process holds it, or one on another machine, of which nothing is known from here.
        """
        here = Holder.current()
        with self._database.writing() as connection:
            held = _find(connection, service)
            if held is not None and not is_dead(held.holder, here):
                raise Locked(f"service {service} is being changed: {held}{_way_out(held, here)}")
            _remove(connection, service)
            row = {"service": service, "run": run, "owner": owner, "since": self._now(), **dataclasses.asdict(here)}
            connection.execute(insert(tables.Lock), row)
        return held

    def release(self, service: str, run: str) -> bool:
        """Give the lock back if that run holds it; returns whether it did."""
        with self._database.writing() as connection:
            held = _find(connection, service)
            if held is None or held.run != run:
                return False
            _remove(connection, service)
        return True

    def to_break(self, service: str) -> Held | None:
        """The lock that a person wants to break because its holder is gone; None: nobody holds it.

        Raises:
            Refused: its holder certainly runs on this machine.
        """
        held = next((held for held, _ in self.held() if held.service == service), None)
        if held is not None and is_alive(held.holder, Holder.current()):
            raise Refused(f"service {service} is being changed right now: {held}", reason="holder_alive")
        return held

    def held(self) -> list[tuple[Held, bool]]:
        """All locks, each with whether its holder may be alive."""
        here = Holder.current()
        with self._database.reading() as connection:
            rows = connection.execute(select(tables.Lock).order_by(col(tables.Lock.service))).mappings().all()
        return [(held, not is_dead(held.holder, here)) for held in (_held({**row}) for row in rows)]


def _way_out(held: Held, here: Holder) -> str:
    """What to do about a holder of which nothing is known from here."""
    if is_alive(held.holder, here):
        return ""
    return (
        f"; that process cannot be seen from here: look for it on {held.holder.host}, and if it is gone for good "
        f"(a container or machine that was deleted): changectl unlock {held.service} --reason TEXT"
    )


def _find(connection: Connection, service: str) -> Held | None:
    row = connection.execute(select(tables.Lock).where(col(tables.Lock.service) == service)).mappings().first()
    return None if row is None else _held({**row})


def _remove(connection: Connection, service: str) -> None:
    connection.execute(delete(tables.Lock).where(col(tables.Lock.service) == service))


def _held(row: Mapping[str, Any]) -> Held:
    holder = Holder(**{field.name: row[field.name] for field in dataclasses.fields(Holder)})
    return Held(row["service"], row["run"], row["owner"], row["since"], holder)
