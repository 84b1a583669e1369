"""A whole way back with a real process: looked at before the stop, only our files, and never left stopped by us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, command, procfs

SERVER = """
import http.server, sys
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


class Service:
    """A service that reads two files; this run edits the first."""

    def __init__(self, host: Any, port: int) -> None:
        self.host, self.home = host, host.folder / "srv"
        self.home.mkdir()
        (self.home / "server.py").write_text(SERVER)
        start = [sys.executable, "server.py", str(port)]
        self.manager = {"command": {"start": start, "cwd": str(self.home), "pid": {"port": port}}}
        self.ours, self.other = host.file("ours.conf", b"old"), host.file("other.conf", b"theirs")
        host.call("service", manager=self.manager, action="start")
        self.first = self.wait()
        host.call("capture", files=[str(self.ours), str(self.other)], manager=self.manager, process=True)

    def pid(self) -> int | None:
        return command.find(self.manager["command"])

    def wait(self) -> int:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            pid = self.pid()
            if pid is not None:
                return pid
            time.sleep(0.05)
        raise AssertionError("the service did not come up")

    def whole(self, call: str, **args: Any) -> dict[str, Any]:
        settings = {"stop_timeout": 3, "environment_from_snapshot": True}
        return dict(self.host.call(call, manager=self.manager, service=settings, **args))

    def change(self) -> dict[str, Any]:
        write = {"path": str(self.ours), "expect": self.host_digest(b"old"), "staged": self.host.stage(b"new")}
        settings = {"stop_timeout": 3, "environment_from_snapshot": True, "action": "restart"}
        return dict(self.host.call("change", manager=self.manager, service=settings, writes=[write]))

    def host_digest(self, data: bytes) -> str:
        return str(self.host.stage(data))

    def back(self) -> dict[str, Any]:
        return self.whole("bring_back", only=[str(self.ours)])


@pytest.fixture
def service(host: Any, free_port: int) -> Iterator[Service]:
    made = Service(host, free_port)
    yield made
    for item in procfs.everyone():
        if (procfs.link(item.pid, "cwd") or "").startswith(str(made.home)):
            os.kill(item.pid, signal.SIGKILL)


def test_only_what_this_run_wrote_goes_back_whatever_became_of_other_files(service: Service) -> None:
    service.change()
    service.wait()
    service.other.write_bytes(b"edited meanwhile")
    answer = service.back()
    assert answer["files"] == {str(service.ours): "restored"}
    assert (service.ours.read_bytes(), service.other.read_bytes()) == (b"old", b"edited meanwhile")
    assert service.wait()
    assert not service.back()["changed"]  # a second time changes nothing, though the other file differs


def test_a_file_that_cannot_go_back_is_seen_before_the_stop(service: Service) -> None:
    service.change()
    running = service.wait()
    service.ours.write_bytes(b"somebody else's")
    with pytest.raises(Failure) as caught:
        service.back()
    assert caught.value.reason == "changed_by_other"
    assert caught.value.details["started"] is False
    assert service.pid() == running
    assert not any(event.get("action") == "stop" for event in service.host.events())


@pytest.mark.parametrize("damage", ["edited", "rotten"])
def test_a_service_that_does_not_run_is_started_whatever_stands_in_the_way(service: Service, damage: str) -> None:
    service.change()
    os.kill(service.wait(), signal.SIGKILL)
    if damage == "edited":
        service.ours.write_bytes(b"somebody else's")
    else:
        saved = service.host.run_folder / "snapshot" / "files" / service.host_digest(b"old")
        saved.write_bytes(b"rotten")
    with pytest.raises(Failure) as caught:
        service.back()
    assert caught.value.reason == ("changed_by_other" if damage == "edited" else "damaged_state")
    assert caught.value.details["started"] is True
    assert service.wait()


def test_a_file_that_is_edited_while_the_service_stops_leaves_it_running_all_the_same(service: Service) -> None:
    edit = f"import os, signal; open({str(service.ours)!r}, 'w').write('in between'); os.kill(%d, signal.SIGKILL)"
    service.change()
    pid = service.wait()
    service.manager["command"]["stop"] = [sys.executable, "-c", edit % pid]
    with pytest.raises(Failure) as caught:
        service.back()
    assert caught.value.reason == "changed_by_other"
    assert caught.value.details["started"] is True
    assert service.wait() != pid
    assert service.ours.read_bytes() == b"in between"


def test_an_older_change_may_do_nothing_after_the_way_back_began(service: Service) -> None:
    service.host.stage(b"new")
    assert service.host.call("generation")["generation"] == 1
    service.host.become(generation=2)
    service.back()
    service.host.generation = 1
    for act in (service.change, lambda: service.host.call("forget")):
        with pytest.raises(Failure) as caught:
            act()
        assert caught.value.reason == "stale_generation"
        assert "written" not in caught.value.details  # an earlier call of the run may have written
    assert service.ours.read_bytes() == b"old"
    assert service.host.call("generation")["generation"] == 2


def test_the_way_back_waits_for_the_stop_of_a_play_that_lost_its_contact(service: Service, place: Path) -> None:
    script = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); time.sleep(1)"
    )
    lock = str(service.host.state / "lock")
    with subprocess.Popen([sys.executable, "-c", script, lock], stdout=subprocess.PIPE, cwd=place) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(Failure) as caught:
            service.whole("bring_back", lock_wait=0.1)
        assert caught.value.reason == "host_busy"
        assert service.whole("bring_back", lock_wait=30)["changed"] is False


def test_a_refused_write_says_that_nothing_was_written_and_a_late_failure_that_something_was(service: Service) -> None:
    service.ours.write_bytes(b"somebody else's")
    with pytest.raises(Failure) as caught:
        service.change()
    assert (caught.value.reason, caught.value.details["written"]) == ("changed_by_other", False)
    service.ours.write_bytes(b"old")
    service.manager["command"]["start"] = ["/no/such/program"]
    with pytest.raises(Failure) as caught:
        service.change()
    assert (caught.value.reason, caught.value.details["written"]) == ("start_failed", True)
    assert service.ours.read_bytes() == b"new"


def test_the_first_of_two_files_counts_as_written_when_the_second_is_refused(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"1")
    host.call("capture", files=[str(first)])
    staged, expect = host.stage(b"2"), host.stage(b"1")
    writes = [{"path": str(path), "expect": expect, "staged": staged} for path in (first, second)]
    with pytest.raises(Failure) as caught:
        host.call("change", writes=writes)
    assert (caught.value.reason, caught.value.details["written"]) == ("not_captured", True)
    assert first.read_bytes() == b"2"


def test_a_service_that_was_started_on_other_bytes_is_restarted_though_somebody_put_the_saved_ones_back(
    service: Service,
) -> None:
    service.change()
    changed = service.wait()
    time.sleep(0.1)
    service.ours.write_bytes(b"old")  # by a configuration manager, or by hand: the process still runs on the new ones
    service.back()

    assert service.wait() not in (service.first, changed)
    assert service.ours.read_bytes() == b"old"


def test_a_service_that_runs_on_the_saved_files_since_they_came_back_is_left_alone(service: Service) -> None:
    service.change()
    service.wait()
    service.back()
    back = service.wait()
    again = service.back()

    assert not again["changed"]
    assert service.wait() == back
