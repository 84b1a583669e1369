"""The real vLLM runs on a host of the lab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.harness.vllm_service import VllmService

pytestmark = [pytest.mark.lab, pytest.mark.vllm]


@pytest.mark.timeout(400)
def test_vllm_answers_on_a_lab_host_and_keeps_its_engine_off_the_api_servers_core(
    vllm_service: Callable[..., VllmService],
) -> None:
    service = vllm_service(environment={"OMP_NUM_THREADS": "1"})

    text = service.complete("Hello", tokens=12)

    assert len(text) == 12
    assert text.isprintable()
    assert service.get("/v1/models")["data"][0]["max_model_len"] == 1024
    assert "vllm:generation_tokens_total" in service.text("/metrics")
    assert "'max_num_seqs': 4" in service.log()
    service.wait_pinned()
    titles = service.processes()
    assert any("VLLM::EngineCore" in title for title in titles)
    assert {title.split()[1] for title in titles if "VLLM::" in title} == {"0"}
