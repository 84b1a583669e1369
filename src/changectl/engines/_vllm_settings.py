"""The settings of vLLM that operators change: names as in `vllm serve --help=all` and as keys of its YAML file."""

from __future__ import annotations

from typing import Any

from changectl.core.settings import Setting, SettingType


def _row(name: str, kind: SettingType = "int", *short: str, **more: Any) -> Setting:
    negation = f"--no-{name}" if kind == "bool" else None
    return Setting(name, (f"--{name}", *short), key=name, type=kind, negation=negation, **more)


def _seen(name: str, kind: SettingType = "int", *short: str, **more: Any) -> Setting:
    """A setting that vLLM reports: in its start log when it is not the default, some also in metrics or models."""
    return _row(name, kind, *short, effective=name, **more)


SETTINGS: tuple[Setting, ...] = (
    # scheduler
    _seen("max-num-seqs", canonical="concurrency_limit", minimum=1),
    _seen("max-num-batched-tokens", canonical="batch_tokens", minimum=1),
    _seen("max-num-queued-reqs", canonical="queue_limit", minimum=0),
    _seen("max-num-queued-tokens", minimum=0),
    _seen("max-num-scheduled-tokens", minimum=1),
    _seen("long-prefill-token-threshold", minimum=0),
    _seen("enable-chunked-prefill", "bool"),
    _seen("scheduling-policy", "str"),
    _seen("async-scheduling", "bool"),
    _seen("stream-interval", minimum=1),
    # model
    _seen("model", "str", canonical="model_path", changes_answers=True, note="with serve: the bare word after it"),
    _seen("served-model-name", "str", canonical="model_name"),
    _seen("max-model-len", canonical="context_len", minimum=-1, changes_answers=True, note="auto or -1: by memory"),
    _seen("dtype", "str", canonical="precision", changes_answers=True),
    _seen("quantization", "str", "-q", canonical="quantization", changes_answers=True),
    _seen("tokenizer", "str", changes_answers=True),
    _seen("tokenizer-mode", "str", changes_answers=True),
    _seen("load-format", "str"),
    _seen("revision", "str", changes_answers=True),
    _seen("seed", changes_answers=True),
    _seen("enforce-eager", "bool", canonical="cuda_graph", note="the off switch of CUDA graphs"),
    _seen("generation-config", "str", changes_answers=True),
    _seen("override-generation-config", "json", canonical="max_output", changes_answers=True),
    _seen("trust-remote-code", "bool", changes_answers=True),
    # memory
    _seen("gpu-memory-utilization", "float", canonical="gpu_mem_fraction", minimum=0.01, maximum=1.0),
    _seen("kv-cache-memory-bytes", canonical="kv_size_explicit", minimum=1),
    _seen("kv-cache-dtype", "str", canonical="kv_dtype", changes_answers=True),
    _seen("block-size", minimum=1),
    _seen("num-gpu-blocks-override", minimum=1),
    _seen("enable-prefix-caching", "bool", canonical="prefix_cache"),
    _seen("prefix-caching-hash-algo", "str"),
    _seen("cpu-offload-gb", "float", minimum=0),
    _seen("swap-space", "float", minimum=0, note="gone since 0.18"),
    _seen("kv-offloading-size", "float", minimum=0),
    _seen("enable-sleep-mode", "bool"),
    # parallelism and processes
    _seen("tensor-parallel-size", "int", "-tp", canonical="parallelism", minimum=1),
    _seen("pipeline-parallel-size", "int", "-pp", minimum=1),
    _seen("data-parallel-size", "int", "-dp", canonical="instances", minimum=1),
    _seen("enable-expert-parallel", "bool", "-ep"),
    _seen("distributed-executor-backend", "str"),
    _seen("api-server-count", "int", "-asc", canonical="cpu_threads", minimum=0),
    _seen("renderer-num-workers", minimum=1),
    # compilation
    _seen("max-cudagraph-capture-size", minimum=0),
    _seen("cudagraph-capture-sizes", "str"),
    _seen("compilation-config", "json", "-cc", changes_answers=True),
    _seen("optimization-level", "int", minimum=0, maximum=3),
    _seen("speculative-config", "json", "-sc", changes_answers=True),
    # server
    _seen("host", "str", canonical="host"),
    _seen("port", canonical="port", minimum=1, maximum=65535),
    _seen("shutdown-timeout", canonical="timeout", minimum=0, note="seconds of drain after the stop signal"),
    _seen("disable-log-stats", "bool"),
    _seen("enable-log-requests", "bool"),
    _seen("disable-log-requests", "bool", note="removed: logging requests is opt-in now"),
    _seen("uvicorn-log-level", "str"),
    # environment only
    Setting("VLLM_ENGINE_READY_TIMEOUT_S", env="VLLM_ENGINE_READY_TIMEOUT_S", type="int", minimum=1),
    Setting("VLLM_CPU_KVCACHE_SPACE", env="VLLM_CPU_KVCACHE_SPACE", type="int", minimum=0,
            note="GiB; CPU build: overrides kv-cache-memory-bytes"),
    Setting("VLLM_CPU_OMP_THREADS_BIND", env="VLLM_CPU_OMP_THREADS_BIND"),
    Setting("VLLM_ATTENTION_BACKEND", env="VLLM_ATTENTION_BACKEND", changes_answers=True),
)  # fmt: skip
