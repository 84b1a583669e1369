"""The real vLLM, changed over SSH: one change is kept, one is not effective, one does not start.

One service for the whole file, since a start costs half a minute; each test leaves it as good as it found it. The tests
are about what is decided and proven, not about speed: the limits on latency are far away from any of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.lab.desk import FAR_LIMITS, Desk, Ended
from tests.lab.harness.lab import Lab
from tests.lab.harness.vllm_service import VllmService

# Without the fixtures: the first test also pays for installing vLLM, booting and the first start.
pytestmark = [pytest.mark.lab, pytest.mark.vllm, pytest.mark.timeout(400, func_only=True)]
# One stream: the client shares a core with the API server, and must not be late for its own requests.
LEVELS = "{normal: 1 stream}"


@pytest.fixture(scope="module")
def words(vllm_machine: None, lab: Lab) -> Iterator[VllmService]:
    """A service whose environment silently overrides the size that its flag gives; at first both say the same."""
    service = VllmService(
        lab.host("v1"), flags={"--kv-cache-memory-bytes": "1G"}, environment={"VLLM_CPU_KVCACHE_SPACE": "1"}
    )
    service.install()
    service.wait_pinned()
    yield service
    service.uninstall()


def change(desk: Desk, service: VllmService, text: str, code: int) -> Ended:
    """Apply one change, given as YAML, to the service."""
    desk.lay_out([service], levels=LEVELS)
    return desk.measured(desk.plan(text, service=service.name, more=FAR_LIMITS), code, timeout=360)


def files_of(service: VllmService) -> list[str]:
    """Digest, mode, owner and size of the configuration."""
    paths = [service.unit_file, service.env_file]
    facts = service.host.run(["stat", "--format=%n %a %U:%G %s", *paths]).stdout
    return [*facts.splitlines(), *service.host.run(["sha256sum", *paths]).stdout.splitlines()]


def step_of(desk: Desk, ended: Ended) -> dict[str, Any]:
    """The only step of the run, as the history tells it."""
    steps: list[dict[str, Any]] = desk.show(ended.document["run"]["run"])["steps"]
    assert len(steps) == 1
    return steps[0]


def test_more_sequences_are_kept_and_the_value_is_read_from_the_start_log(desk: Desk, words: VllmService) -> None:
    ended = change(desk, words, "{parameter: {name: max-num-seqs, from: 4, to: 8}}", 0)

    assert b"--max-num-seqs 8" in words.host.read_file(words.unit_file)
    assert "'max_num_seqs': 8" in words.log()
    step = step_of(desk, ended)
    assert (step["outcome"], step["verdict"]) == ("kept", "no_gross_harm")
    effect = step["effective"][0]
    assert effect["values"]["engine"] == {"before": "'4'", "after": "'8'"}
    assert (effect["furthest"], effect["effective"], effect["also_moved"]) == ("engine", True, [])
    assert len(words.complete(tokens=4)) == 4


def test_a_flag_that_the_environment_overrides_is_not_effective_and_comes_back(desk: Desk, words: VllmService) -> None:
    before = files_of(words)

    ended = change(desk, words, "{parameter: {name: kv-cache-memory-bytes, from: 1G, to: 512M}}", 4)

    assert ended.document["reason"] == "not_effective"
    assert files_of(words) == before
    step = step_of(desk, ended)
    assert step["outcome"] == "reverted"
    effect = step["effective"][0]
    assert effect["values"]["process"] == {"before": "'1G'", "after": "'512M'"}
    assert effect["values"]["engine"] == {"before": f"'{2**30}'", "after": f"'{2**30}'"}
    assert (effect["furthest"], effect["effective"]) == ("engine", False)
    assert [proof["verified"] for proof in step["verify"]] == [True]
    assert len(words.complete(tokens=4)) == 4


def test_a_start_that_fails_is_explained_by_its_deepest_error_and_the_service_comes_back(
    desk: Desk, words: VllmService
) -> None:
    before = files_of(words)

    ended = change(desk, words, "{parameter: {name: num-gpu-blocks-override, from: absent, to: 2}}", 4)

    assert ended.document["reason"] == "did_not_start"
    assert files_of(words) == before
    step = step_of(desk, ended)
    assert step["outcome"] == "reverted"
    failed, restored = step["ready"]
    assert failed["cause"] == "kv_too_small"
    # The engine process's own words; what the server says last is only that something above went wrong.
    assert "estimated maximum model length is 128" in failed["line"]
    assert "lower max-model-len" in failed["hint"]
    assert restored["ok"]
    assert [proof["verified"] for proof in step["verify"]] == [True]
    assert len(words.complete(tokens=4)) == 4
