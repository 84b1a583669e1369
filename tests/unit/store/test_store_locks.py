from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from changectl.core.errors import ChangectlError, Locked, Refused
from changectl.store import open_store, tables
from changectl.store.holders import Holder, is_alive, is_dead
from changectl.store.store import Store

HOLD = """
import sys, time
from pathlib import Path
from changectl.store import open_store
store = open_store(Path(sys.argv[1]))
with store.records.lock("chat", "r1", "ann@gateway"):
    print("held", flush=True)
    time.sleep(60)
"""


def holding_process(database: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(database)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def pretend(store: Store, **columns: object) -> None:
    with store._database.writing() as connection:
        connection.execute(update(tables.Lock).values(**columns))


def test_a_second_change_of_the_service_is_locked_out_and_told_by_whom(store: Store, database: Path) -> None:
    with open_store(database) as other, store.records.lock("chat", "r1", "ann@gateway"):
        with pytest.raises(Locked) as caught, other.records.lock("chat", "r2", "bob@laptop"):
            pytest.fail("two hold the lock")
        (held, alive), *_ = store.locks.held()

    assert alive
    for part in ("chat", "r1", "ann@gateway", str(os.getpid()), f"since {held.since[:10]} "):
        assert part in str(caught.value)
    assert caught.value.exit_code == 7


def test_other_services_and_later_changes_are_free(store: Store) -> None:
    with store.records.lock("chat", "r1", "ann"), store.records.lock("search", "r2", "ann"):
        assert [held.service for held, _ in store.locks.held()] == ["chat", "search"]
    with store.records.lock("chat", "r3", "bob") as _:
        pass
    assert store.locks.held() == []


def test_the_lock_goes_when_the_work_fails(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.records.lock("chat", "r1", "ann"):
        raise ZeroDivisionError
    assert store.locks.held() == []


def test_the_database_itself_refuses_a_second_row(store: Store) -> None:
    columns = "owner, host, machine, boot, pid_space, pid, start_ticks, since"
    insert = f"INSERT INTO lock SELECT service, 'r2', {columns} FROM lock"
    with store.records.lock("chat", "r1", "ann"):
        with pytest.raises(ChangectlError) as caught, store._database.writing() as connection:
            connection.exec_driver_sql(insert)
        assert isinstance(caught.value.__cause__, IntegrityError)


def test_a_killed_holder_is_taken_over_and_named(store: Store, database: Path) -> None:
    process = holding_process(database)
    try:
        with pytest.raises(Locked), store.records.lock("chat", "r2", "bob"):
            pytest.fail("two hold the lock")
    finally:
        process.send_signal(signal.SIGKILL)

    # It is a zombie as long as nobody has waited for it: that is dead, too.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    lock = store.records.lock("chat", "r2", "bob")
    with lock:
        assert lock.taken_over is not None
        assert (lock.taken_over.run, lock.taken_over.owner) == ("r1", "ann@gateway")
        assert lock.taken_over.holder.pid == process.pid
    process.wait()
    fresh = store.records.lock("chat", "r3", "bob")
    with fresh:
        assert fresh.taken_over is None


def test_a_later_process_with_the_same_number_is_not_the_holder(store: Store) -> None:
    store.locks.acquire("chat", "r1", "ann")
    pretend(store, start_ticks=1)
    taken = store.locks.acquire("chat", "r2", "bob")
    assert taken is not None
    assert taken.run == "r1"


@pytest.mark.parametrize("column", ["host", "machine", "pid_space"])
def test_a_holder_elsewhere_is_never_stolen_from(store: Store, column: str) -> None:
    store.locks.acquire("chat", "r1", "ann")
    pretend(store, **{column: "elsewhere", "pid": 2**22 + 1, "start_ticks": 1})
    with pytest.raises(Locked):
        store.locks.acquire("chat", "r2", "bob")


def test_a_holder_from_before_a_reboot_of_this_machine_is_dead() -> None:
    here = Holder.current()
    assert is_dead(dataclasses.replace(here, boot="an earlier one"), here)
    assert not is_dead(here, here)


def test_releasing_gives_back_only_the_own_lock(store: Store) -> None:
    store.locks.acquire("chat", "r1", "ann")
    assert not store.locks.release("chat", "r2")
    assert not store.locks.release("search", "r1")
    assert store.locks.release("chat", "r1")
    assert store.locks.held() == []


@pytest.mark.parametrize("column", ["host", "machine", "pid_space", "boot"])
def test_a_holder_elsewhere_is_not_known_to_live_and_the_message_names_the_way_out(store: Store, column: str) -> None:
    store.locks.acquire("chat", "r1", "ann")
    where = {"host": "elsewhere", "machine": "other"} if column == "boot" else {}
    pretend(store, **{column: "elsewhere", "pid": 2**22 + 1, "start_ticks": 1, **where})

    with pytest.raises(Locked, match=r"cannot be seen.*changectl unlock chat --reason TEXT"):
        store.locks.acquire("chat", "r2", "bob")
    held = store.locks.to_break("chat")
    assert held is not None
    assert held.run == "r1"


def test_the_lock_of_a_living_holder_is_not_to_be_broken(store: Store) -> None:
    with store.records.lock("chat", "r1", "ann"):
        with pytest.raises(Refused, match="right now") as caught:
            store.locks.to_break("chat")
        with pytest.raises(Locked) as locked:
            store.locks.acquire("chat", "r2", "bob")
    assert caught.value.reason == "holder_alive"
    assert "unlock" not in str(locked.value)
    assert store.locks.to_break("chat") is None


def test_a_holder_in_a_container_of_this_machine_is_seen_from_outside() -> None:
    start = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", sys.executable, "-c"]
    says = "import dataclasses, json, sys; from changectl.store.holders import Holder; "
    says += "print(json.dumps(dataclasses.asdict(Holder.current())), flush=True); sys.stdin.read()"
    with subprocess.Popen([*start, says], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as contained:
        assert contained.stdout is not None
        assert contained.stdin is not None
        line = contained.stdout.readline()
        if not line:
            pytest.skip("this machine lets nobody make a process space of their own")
        # Its own /proc is not mounted anew there, so it reads another process's start: only its number counts.
        holder = Holder(**{**json.loads(line), "pid": 1})
        here = Holder.current()
        assert holder.pid_space != here.pid_space
        assert is_alive(holder, here)
        assert not is_alive(dataclasses.replace(holder, pid=77), here)
        contained.stdin.close()
        contained.wait(10)
    assert not is_alive(holder, here)
