"""Starts that look well and are not, a start limit, files that somebody else writes: on a real systemd, over ssh."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from tests.lab.desk import Desk, Ended, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.stub_service import DIES_AT_ONCE, DIES_LATER, GOOD, HOLLOW, STUCK, StubService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]


@pytest.fixture
def stub(h1: LabHost) -> Iterator[StubService]:
    made = StubService(h1).install()
    yield made
    made.uninstall()


def changed(desk: Desk, stub: StubService, workers: int, code: int) -> Ended:
    """Apply a change to so many workers, which must end with this exit code."""
    desk.lay_out([stub], texts={stub.name: stub.described})  # type: ignore[list-item]  # it has all that is asked for
    change = f"{{parameter: {{name: concurrency_limit, from: {GOOD}, to: {workers}}}}}"
    return desk.measured(desk.plan(change, service=stub.name), code)


def failed_start(desk: Desk, ended: Ended) -> dict[str, Any]:
    """What the record says of the start that failed; the saved one answered."""
    assert ended.document["reason"] == "did_not_start"
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert [proof["verified"] for proof in step["verify"]] == [True]
    found: dict[str, Any] = step["ready"][0]
    assert found["ok"] is False
    return found


def back(stub: StubService) -> bool:
    return stub.serves() and stub.host.read_file(stub.unit_file).decode() == stub.unit_text()


def test_a_start_limit_that_the_change_ran_into_does_not_stop_the_way_back(desk: Desk, stub: StubService) -> None:
    ended = changed(desk, stub, DIES_AT_ONCE, 4)

    assert failed_start(desk, ended)["reason"] in ("crash_loop", "process_gone")
    words = ["journalctl", "--boot", "--no-pager", "--output=cat", f"--unit={stub.unit}", "_PID=1"]
    assert "Start request repeated too quickly" in stub.host.run(words).stdout
    assert back(stub)
    assert stub.shown("ActiveState") == "active"


def test_a_unit_that_is_active_and_dies_two_seconds_later_has_not_started(desk: Desk, stub: StubService) -> None:
    ended = changed(desk, stub, DIES_LATER, 4)

    assert failed_start(desk, ended)["reason"] in ("crash_loop", "process_gone")
    assert back(stub)


def test_health_that_answers_without_serving_is_not_ready(desk: Desk, stub: StubService) -> None:
    found = failed_start(desk, changed(desk, stub, HOLLOW, 4))

    assert found["reason"] == "deadline"
    assert "no real answer within 20 s" in found["message"]
    assert "what it answers: healthy, but no real answer: HTTP 503" in found["message"]
    assert back(stub)


def test_a_start_that_neither_reads_nor_computes_is_named_as_stuck(desk: Desk, stub: StubService) -> None:
    found = failed_start(desk, changed(desk, stub, STUCK, 4))

    assert found["reason"] == "stuck"
    assert "it has read nothing and used no processor time for" in found["message"]
    assert back(stub)


def test_a_job_that_writes_its_own_version_after_the_way_back_is_noticed(desk: Desk, stub: StubService) -> None:
    new, job = f"--workers {DIES_AT_ONCE} ", "config-job.service"
    script = (
        'until grep -qe "$2" "$1"; do sleep 0.05; done; cp -p "$1" "$1.job"; '
        'while grep -qe "$2" "$1"; do sleep 0.05; done; sleep 1.2; mv "$1.job" "$1"'
    )
    words = ["systemd-run", "--quiet", "--collect", f"--unit={job}", "sh", "-c", script, "sh", stub.unit_file, new]
    stub.host.run(words)

    ended = changed(desk, stub, DIES_AT_ONCE, 6)

    assert ended.document["run"]["outcome"] == "revert_unverified"
    text = ended.document["steps"][0]["text"]
    assert "was written again by something else" in text or f"{stub.unit_file} differs in bytes" in text


def test_an_edit_of_other_lines_meanwhile_stays_and_only_our_part_goes_back(desk: Desk, stub: StubService) -> None:
    def edit() -> None:
        wait_for(lambda: f"--workers {HOLLOW}" in stub.host.read_file(stub.unit_file).decode(), "it is written")
        stub.host.run(["sed", "-i", "s/^Description=.*/Description=theirs/", stub.unit_file])

    editor = Thread(target=edit)
    editor.start()
    ended = changed(desk, stub, HOLLOW, 6)
    editor.join()

    assert ended.document["run"]["outcome"] == "revert_unverified"
    assert "what the run had written there is taken back, and the rest stays" in ended.document["steps"][0]["text"]
    present = stub.host.read_file(stub.unit_file).decode()
    assert present == stub.unit_text().replace("Description=stub", "Description=theirs")
    assert stub.serves()
    assert f"--workers {GOOD} " in stub.host.read_file(f"/proc/{stub.shown('MainPID')}/cmdline").decode().replace(
        "\0", " "
    )
