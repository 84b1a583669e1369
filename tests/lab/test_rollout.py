"""Three instances on three real hosts: one does not take the change, goes back alone, and is done once it is mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import ANY_FIGURES, Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(480, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

#: A stand-in for a limit of one host that the new value runs into: while this file is there, two slots do not start.
LIMIT = "/srv/llm/no-two-slots"
REFUSES = (
    f"ExecStartPre=/bin/sh -c \"! test -e {LIMIT} || ! grep -q 'parallel [2]' /etc/systemd/system/llama-chat.service\""
)
CHANGE = "{parameter: {name: parallel, from: 4, to: 2}}"


def slots(services: list[LlamaService]) -> list[int]:
    return [service.get("/props")["total_slots"] for service in services]


def mixes(desk: Desk) -> list[dict[str, Any]]:
    (service,) = desk.run("status", "--json").expect(0).document["services"]
    found: list[dict[str, Any]] = service["mixes"]
    return found


def test_one_that_does_not_start_goes_back_alone_and_the_same_plan_goes_on_once_it_is_mended(
    desk: Desk, h1: LabHost, h2: LabHost, c1: LabHost, llama_service: ServiceMaker
) -> None:
    services = [llama_service(host, unit_lines=(REFUSES,)) for host in (h1, h2, c1)]
    desk.lay_out(services)
    h2.write_file(LIMIT, "", mode="0644")
    before = services[1].stat(services[1].unit_file)
    plan = desk.plan(CHANGE, more=f"    accept: {ANY_FIGURES}\n")

    ended = desk.measured(plan, 4, timeout=300)
    (step,) = ended.document["steps"]
    assert (step["outcome"], step["reason"]) == ("kept_partly", "did_not_start")
    assert step["instances"] == {"h1": "kept", "h2": "reverted", "c1": "untouched"}
    assert slots(services) == [2, 4, 4]
    assert services[1].stat(services[1].unit_file) == before
    assert [dict(mix["values"]) for mix in mixes(desk)] == [{"h1": "2", "h2": "4", "c1": "4"}]
    assert "not the same everywhere" in desk.run("status").expect(0).out

    h2.run(["rm", "--", LIMIT])
    first, partly = services[0].pid(), ended.document["run"]["run"]
    ended = desk.measured(plan, 0, timeout=300)
    (step,) = ended.document["steps"]
    assert step["instances"] == {"h1": "nothing_to_do", "h2": "kept", "c1": "kept"}
    assert slots(services) == [2, 2, 2]
    assert services[0].pid() == first
    assert mixes(desk) == []

    desk.revert(ended.document["run"]["run"]).expect(0)
    desk.revert(partly).expect(0)
    assert slots(services) == [4, 4, 4]
