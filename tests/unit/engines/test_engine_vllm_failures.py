"""Why a start of vLLM failed, told from logs recorded with a real one (0.32 on CPUs; the GPU's case is shaped)."""

from __future__ import annotations

import pytest
from tests.unit.engines.support import lines

from changectl.engines import load

ENGINE = load("vllm")


@pytest.mark.parametrize(
    ("case", "cause", "words"),
    [
        ("kv-too-small", "kv_too_small", "estimated maximum model length is 128"),
        ("too-long", "context_too_long", "derived max_model_len (max_position_embeddings=2048.0"),
        ("corrupt-model", "model_corrupt", "header too large"),
        ("truncated-model", "model_corrupt", "file not fully covered"),
        ("unknown-flag", "unknown_flag", "--disable-log-requests"),
        ("bad-value", "bad_value", "invalid int value: 'many'"),
        ("bad-choice", "bad_value", "choose from 'auto', 'bfloat16'"),
        ("missing-model", "model_missing", "/srv/models/nothere"),
        ("port-in-use", "port_in_use", "Address already in use"),
        ("host-memory", "host_memory_short", "requested memory for kv (900.0 GiB)"),
        ("gpu-memory-taken", "memory_taken", "31.2/79.1 GiB"),
        ("cross-rule", "cross_rule", "max_num_seqs (4)"),
    ],
)
def test_the_cause_comes_from_the_deepest_process_not_from_the_last_line(case: str, cause: str, words: str) -> None:
    found = ENGINE.deepest_cause(lines("vllm", f"start-{case}.log"))

    assert found is not None
    assert found.cause == cause
    assert words in found.line


def test_an_unknown_exception_is_still_the_cause() -> None:
    log = [
        "(Worker_TP1 pid=9) ERROR 11-30 01:00:00 [worker.py:1] torch.AcceleratorError: CUDA error: misaligned address",
        "(EngineCore pid=8) ERROR 11-30 01:00:01 [core.py:1] RuntimeError: worker died",
        "(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    found = ENGINE.deepest_cause(log)

    assert found is not None
    assert found.line == "torch.AcceleratorError: CUDA error: misaligned address"


def test_a_count_of_complaints_is_told_with_the_first_of_them() -> None:
    log = ["x.ValidationError: 2 validation errors for CacheConfig", "  Value error, block size 7 is odd [type=value]"]
    found = ENGINE.deepest_cause(log)

    assert found is not None
    assert (
        found.line
        == "x.ValidationError: 2 validation errors for CacheConfig Value error, block size 7 is odd [type=value]"
    )


def test_an_earlier_failed_start_is_not_blamed_for_the_latest() -> None:
    log = [*lines("vllm", "start-corrupt-model.log"), *lines("vllm", "start-kv-too-small.log")]
    found = ENGINE.deepest_cause(log)

    assert found is not None
    assert found.cause == "kv_too_small"


def test_a_journals_prefix_does_not_hide_the_process() -> None:
    log = [f"Nov 30 02:00:26 gpu1 vllm[3653]: {line}" for line in lines("vllm", "start-kv-too-small.log")]
    found = ENGINE.deepest_cause(log)

    assert found is not None
    assert found.cause == "kv_too_small"


def test_a_good_start_has_no_cause() -> None:
    assert ENGINE.deepest_cause(lines("vllm", "start.log")) is None


def test_only_lines_that_no_good_start_shows_are_certain() -> None:
    sure = ENGINE.deepest_cause(lines("vllm", "start-kv-too-small.log"))
    harmless = (
        "(APIServer pid=2) Could not cache. Will ignore error and continue. Error: [Errno 13] Permission denied: '/x'"
    )
    unsure = ENGINE.deepest_cause([harmless])
    unnamed = ENGINE.deepest_cause(["(EngineCore pid=8) ERROR 11-30 01:00:01 [core.py:1] RuntimeError: something"])

    assert sure is not None
    assert sure.certain
    assert unsure is not None
    assert not unsure.certain
    assert unnamed is not None
    assert not unnamed.certain
