"""An engine that changectl has no file for, described in the service file, on a real host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import FAR_LIMITS, Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import describe_service
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
DESCRIBED = """engine:
  generic:
    ready: "GET /health 200"
    answer: {protocol: openai_completions}
    settings:
      concurrency_limit: {flag: --parallel, type: int}
      server_threads: {env: LLAMA_ARG_THREADS_HTTP, type: int}
    metrics:
      page: /metrics
      waiting: "llamacpp:requests_deferred"
      running: "llamacpp:requests_processing"
      tokens: "llamacpp:tokens_predicted_total"
"""
NOT_EXPOSED = "not known (not exposed)"
ServiceMaker = Callable[..., LlamaService]


def laid_out(desk: Desk, service: LlamaService, description: str = DESCRIBED) -> Desk:
    """The service's file, with the description in place of the engine's name."""
    text = describe_service(service).replace(f"engine: {service.engine}\n", description)
    assert "generic:" in text
    return desk.lay_out([service], texts={service.name: text})


def test_a_flag_of_a_described_engine_is_kept_on_what_file_and_process_say(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    laid_out(desk, service)

    plan = desk.plan("{parameter: {name: concurrency_limit, from: 4, to: 6}}", more=FAR_LIMITS)
    ended = desk.measured(plan, 0)

    assert service.get("/props")["total_slots"] == 6
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    effect = step["effective"][0]
    assert (effect["furthest"], effect["values"]["process"]) == ("process", {"before": "'4'", "after": "'6'"})
    assert effect["values"]["engine"] == {"before": NOT_EXPOSED, "after": NOT_EXPOSED}
    assert "answered" in step["ready"][0]["detail"]


def test_a_described_engine_that_ends_at_its_start_has_the_saved_configuration_back(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    laid_out(desk, service)
    before = service.stat(service.env_file)

    ended = desk.measured(desk.plan("{environment: {name: LLAMA_ARG_N_PREDICT, from: absent, to: many}}"), 4)

    assert ended.document["reason"] == "did_not_start"
    assert service.stat(service.env_file) == before
    assert len(service.complete(tokens=4)) == 4


def test_a_described_engine_is_not_ready_before_it_says_what_was_declared(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    laid_out(desk, service, DESCRIBED.replace("GET /health 200", "GET /health 204"))
    pid = service.pid()

    ended = desk.apply(desk.plan("{parameter: {name: concurrency_limit, from: 4, to: 6}}")).expect(3)

    checks = ended.document["steps"][0]["prechecks"]
    assert [check["state"] for check in checks if check["name"] == "healthy_now"] == ["failed"]
    assert service.pid() == pid
