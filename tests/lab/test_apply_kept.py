"""Changes over SSH that are kept: through the installed command, on a real host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]


def test_a_flag_of_a_unit_is_changed_and_kept_and_the_record_tells_the_story(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before, model = service.stat(service.unit_file), service.stat(service.model)

    ended = desk.keep("{parameter: {name: parallel, from: 4, to: 6}}")

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


def test_a_value_in_an_environment_file_is_kept_with_all_that_the_file_carries(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = service.stat(service.env_file)

    desk.keep("{parameter: {name: threads-http, from: 4, to: 3}}")

    assert h1.read_file(service.env_target).endswith(b"\nLLAMA_ARG_THREADS_HTTP=3\n")
    assert b"LLAMA_ARG_THREADS_HTTP=3" in h1.read_file(f"/proc/{service.pid()}/environ").split(b"\0")
    assert h1.run(["readlink", service.env_file]).stdout == f"{service.env_target}\n"
    assert service.stat(service.env_file).splitlines()[1:] == before.splitlines()[1:]


def test_a_variable_that_the_engine_knows_is_kept_as_one_change(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, flags={"--ctx-size": "4096"}, environment={"LLAMA_ARG_N_PARALLEL": "4"})
    desk.lay_out([service])

    desk.keep("{environment: {name: LLAMA_ARG_N_PARALLEL, from: 4, to: 6}}")

    assert service.get("/props")["total_slots"] == 6


def test_an_administrator_with_sudo_applies_and_takes_back_as_root_does(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], user="ops")
    before = service.stat(service.env_file)

    ended = desk.keep('{environment: {name: OMP_NUM_THREADS, from: absent, to: "1"}}')

    environment = h1.read_file(f"/proc/{service.pid()}/environ").split(b"\0")
    assert b"OMP_NUM_THREADS=1" in environment
    assert service.stat(service.env_file).splitlines()[1:] == before.splitlines()[1:]
    desk.revert(ended.document["run"]["run"]).expect(0)
    assert service.stat(service.env_file) == before
