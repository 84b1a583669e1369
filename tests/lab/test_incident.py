"""A service that is already sick, over ssh: mended and watched live, or put back as it was found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import Desk, Ended, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
REASON = "OPS-99 chat does not answer since 02:40"
TOO_MUCH = "3000000000"  # a whole number, as the setting asks for, and more than the engine's own numbers hold
DIES_LATER = "/usr/local/bin/die-later"
#: Runs beside the engine: with the variable, it ends the engine some seconds after it came up.
SCRIPT = """#!/bin/sh
[ -n "$DIE_AFTER" ] || exit 0
( sleep "$DIE_AFTER"; kill -ABRT "$MAINPID" ) >/dev/null 2>&1 &
"""


def act(desk: Desk, plan: str) -> Ended:
    return desk.run("apply", "-i", "hosts.yml", "--incident", REASON, "--json", plan, timeout=300)


def state(service: LlamaService) -> str:
    words = ["systemctl", "show", "--value", "--property=SubState", service.unit]
    return service.host.run(words).stdout.strip()


def break_configuration(service: LlamaService) -> None:
    """Somebody's edit: the unit now asks for what the engine cannot take, and it is started again and again."""
    service.flags = {**service.flags, "--parallel": TOO_MUCH}
    service.host.write_file(service.unit_file, service.unit_text())
    service.host.run(["systemctl", "daemon-reload"])
    service.host.run(["systemctl", "restart", service.unit], check=False)
    wait_for(lambda: state(service) == "auto-restart", "the service does not crash")


def test_a_crash_looping_service_is_mended_watched_and_kept_unjudged(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, unit_lines=("RestartSec=3",))  # slow enough for the start limit: it goes on for ever
    desk.lay_out([service])
    break_configuration(service)

    ended = act(desk, desk.plan(f"{{parameter: {{name: parallel, from: {TOO_MUCH}, to: 4}}}}")).expect(0)

    run = ended.document["run"]["run"]
    step = ended.document["steps"][0]
    assert (step["outcome"], step["reason"], step["verdict"]) == ("kept_unjudged", "incident", None)
    assert ended.document["run"]["incident"] == REASON
    assert "--parallel 4" in service.host.read_file(service.unit_file).decode()
    assert service.complete(tokens=4)
    checks = {one["name"]: one for one in step["prechecks"]}
    assert "waived because of the incident" in checks["healthy_now"]["detail"]
    assert (checks["value_known"]["level"], checks["value_known"]["state"]) == ("required", "passed")
    assert checks["restorable"]["state"] == "passed"
    (watched,) = [entry for entry in ended.document["timeline"] if entry["action"] == "guards"]
    assert 115 < watched["duration_seconds"] < 150
    status = desk.run("status", "--json").expect(0).document["services"][0]
    assert status["kept_unjudged"] == [f"{run}/1"]
    assert REASON in desk.run("show", run).expect(0).out

    desk.revert(run).expect(0)  # back to what was saved, sick as that was
    assert f"--parallel {TOO_MUCH}" in service.host.read_file(service.unit_file).decode()
    assert desk.run("status", "--json").expect(0).document["services"][0]["kept_unjudged"] == []


def test_a_change_that_makes_the_service_die_after_it_answered_is_restored(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    h1.write_file(DIES_LATER, SCRIPT, mode="0755")
    service = llama_service(h1, unit_lines=(f"ExecStartPost={DIES_LATER}",))
    desk.lay_out([service])
    h1.run(["systemctl", "stop", service.unit])
    before = service.stat(service.env_file)

    ended = act(desk, desk.plan("{environment: {name: DIE_AFTER, from: absent, to: 20}}")).expect(4)

    step = ended.document["steps"][0]
    assert (ended.document["reason"], step["outcome"]) == ("guard_broken", "reverted")
    assert "before the change it did not run: inactive, dead" in step["text"]
    assert [proof["verified"] for proof in step["verify"]] == [True]
    assert service.stat(service.env_file) == before
    assert service.complete(tokens=4)
