"""A change over SSH that is kept: through the installed command, on a real host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]
ServiceMaker = Callable[..., LlamaService]


def test_a_flag_of_a_unit_is_changed_and_kept_and_the_record_tells_the_story(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before, model = service.stat(service.unit_file), service.stat(service.model)

    ended = desk.apply(desk.plan("{parameter: {name: parallel, from: 4, to: 6}}")).expect(0)

    assert service.get("/props")["total_slots"] == 6
    assert service.unit_text().replace("--parallel 4", "--parallel 6").encode() == h1.read_file(service.unit_file)
    assert service.stat(service.unit_file).splitlines()[1:] == before.splitlines()[1:]
    assert service.stat(service.model) == model
    run = ended.document["run"]["run"]
    story = desk.show(run)
    assert story["run"]["outcome"] == "kept"
    assert story["run"]["reason"] == "a test of the lab"
    step = story["steps"][0]
    assert (step["outcome"], step["verdict"]) == ("kept", "no_gross_harm")
    assert [phase["phase"] for phase in step["measurements"]] == ["A", "B"]
    assert "-  --parallel 4" in step["edits"][0]["diff"]
    assert desk.run("history").expect(0).out.count(run) == 1
    assert "kept" in desk.run("show", run).expect(0).out
