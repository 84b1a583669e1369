"""`changectl revert` on a real host: a kept change comes back, once, and only where nothing stands on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]


def kept(desk: Desk, change: str) -> str:
    """Apply a change that is kept, and return its run."""
    run: str = desk.keep(change).document["run"]["run"]
    return run


def test_a_kept_change_comes_back_and_a_second_time_nothing_happens(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = service.stat(service.env_file)
    run = kept(desk, "{parameter: {name: threads-http, from: 4, to: 3}}")

    ended = desk.revert(run).expect(0)

    assert ended.document["run"]["reverts"] == run
    assert service.stat(service.env_file) == before
    assert b"LLAMA_ARG_THREADS_HTTP=4" in h1.read_file(f"/proc/{service.pid()}/environ").split(b"\0")
    assert desk.show(run)["run"]["reverted_by"] == ended.document["run"]["run"]
    pid = service.pid()
    again = desk.revert(run).expect(0)
    assert again.document["reason"] == "nothing_to_do"
    assert service.pid() == pid
    assert service.stat(service.env_file) == before


def test_a_change_that_a_later_one_stands_on_is_taken_back_after_that_one_only(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = service.stat(service.unit_file)
    first = kept(desk, "{parameter: {name: parallel, from: 4, to: 6}}")
    second = kept(desk, "{parameter: {name: parallel, from: 6, to: 8}}")
    pid = service.pid()

    refused = desk.revert(first).expect(3)

    assert second in refused.out
    assert service.pid() == pid
    desk.revert(second).expect(0)
    assert service.get("/props")["total_slots"] == 6
    desk.revert(first).expect(0)
    assert service.stat(service.unit_file) == before


def test_a_file_that_somebody_edited_since_is_not_overwritten(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    run = kept(desk, "{parameter: {name: threads-http, from: 4, to: 3}}")
    h1.run(["sh", "-c", 'echo "# checked by night shift" >> "$1"', "sh", service.env_target])
    edited, pid = service.stat(service.env_file), service.pid()

    ended = desk.revert(run).expect(3)

    assert "somebody edited it since" in ended.out
    assert service.stat(service.env_file) == edited
    assert service.pid() == pid
