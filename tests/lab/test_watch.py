"""Changes that are watched before they are kept, on a real host: harm that shows with time is taken back."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from collections.abc import Callable

import pytest
from tests.lab.desk import ANY_FIGURES, Desk, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

#: A stand-in for an engine that leaks with the new setting, two minutes after its start: the lab's launcher does as it
#: says (harness/launcher_faults.py).
LEAK = '{environment: {name: LAB_FAULT_LEAK, from: absent, to: "16@120"}}'
SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"


def watched(desk: Desk, change: str, length: str) -> str:
    return desk.plan(change, more=f"    accept: {ANY_FIGURES}\n    watch: {length}\n")


def begun(desk: Desk) -> str | None:
    """The run whose watch is on record; None: there is none yet."""
    path = desk.folder / ".changectl/changectl.db"
    if not path.exists():
        return None
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with contextlib.closing(database), contextlib.suppress(sqlite3.OperationalError):  # its tables are being made
        rows = database.execute("SELECT run FROM event WHERE kind = 'watch.intent'").fetchall()
        return str(rows[0][0]) if rows else None
    return None


def test_a_change_is_kept_when_its_watch_ends_and_the_record_says_what_was_seen(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])

    ended = desk.measured(watched(desk, SLOTS, "20s"), 0)

    assert service.get("/props")["total_slots"] == 6
    (told,) = ended.document["steps"][0]["watched"]
    assert told["ok"]
    assert told["answers"] >= 3
    assert told["memory_bytes"] > 10e6
    assert any("failures" in text for text in told["not_watched"]), "llama.cpp does not count its failures"
    assert "watched live on h1 for 20s" in desk.run("show", ended.document["run"]["run"]).expect(0).out


def test_memory_that_leaks_from_the_third_minute_on_is_seen_by_the_watch_and_taken_back(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = service.stat(service.env_file)

    ended = desk.measured(watched(desk, LEAK, "165s"), 4, timeout=270)

    step = ended.document["steps"][0]
    assert (step["outcome"], step["verdict"], step["reason"]) == ("reverted", "no_gross_harm", "watch_memory")
    assert "MB a minute and does not settle" in step["text"]
    assert service.stat(service.env_file) == before
    assert b"LAB_FAULT_LEAK" not in h1.read_file(f"/proc/{service.pid()}/environ")


def test_a_controller_that_dies_while_it_watches_leaves_the_saved_configuration(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], more="lease: 8s\n")
    before = service.stat(service.unit_file)
    with desk.start("apply", "-i", "hosts.yml", watched(desk, SLOTS, "10m")) as process:
        wait_for(lambda: begun(desk) is not None, "the watch begins", timeout=120)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    wait_for(lambda: service.stat(service.unit_file) == before, "the host restores by itself")
    service.wait_ready(60)
    assert service.get("/props")["total_slots"] == 4
    run = begun(desk)
    assert run is not None
    desk.run("recover", "-i", "hosts.yml", run).expect(0)
    assert desk.show(run)["steps"][0]["outcome"] == "reverted"
