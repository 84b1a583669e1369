"""What a real host does around a start: it takes its time before the process, or brings something else along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

from changectl.demo.tinymodel import write_gguf

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
MORE_SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"


def test_a_unit_that_prepares_for_seconds_before_its_process_is_kept(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, unit_lines=["ExecStartPre=/bin/sleep 6"])
    desk.lay_out([service])

    ended = desk.keep(MORE_SLOTS)

    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert (step["outcome"], step["verdict"]) == ("kept", "no_gross_harm")
    assert step["outage_seconds"] > 6


def test_a_model_that_the_restart_replaces_is_not_kept_and_a_person_is_called(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, tmp_path: Path
) -> None:
    other = "/srv/models-to-come.gguf"
    service = llama_service(h1, unit_lines=[f"ExecStartPre=-+/bin/cp {other} /srv/models/chat.gguf"])
    desk.lay_out([service])
    before = service.stat(service.unit_file)
    write_gguf(tmp_path / "other.gguf", "small", name="another")
    h1.write_file(other, (tmp_path / "other.gguf").read_bytes())
    try:
        ended = desk.measured(desk.plan(MORE_SLOTS), 6)
    finally:
        h1.run(["rm", other])

    assert ended.document["reason"] == "invalid"
    assert "undeclared difference: model" in str(ended.document["steps"][0]["text"])
    assert service.stat(service.unit_file) == before
