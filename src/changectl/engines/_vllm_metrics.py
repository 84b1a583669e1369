"""What vLLM's metrics page tells, the newest spelling first; names of 0.9 to 0.32."""

from __future__ import annotations

from changectl.core.telemetry.engine_series import MetricTable, Series

_ENDED = "vllm:request_success_total"  # in spite of its name it counts every end, with the reason


def _times(*names: str) -> tuple[Series, ...]:
    return tuple(Series(f"vllm:{name}", "s", histogram=True) for name in names)


def _numbers(*names: str) -> tuple[Series, ...]:
    return tuple(Series(f"vllm:{name}") for name in names)


def _ended(*reasons: str) -> tuple[Series, ...]:
    return (Series(_ENDED, where={"finished_reason": reasons}, none_is_zero=True),)


METRICS = MetricTable(
    {
        "queue_time": _times("request_queue_time_seconds"),
        "prefill_time": _times("request_prefill_time_seconds"),
        "decode_time": _times("request_decode_time_seconds"),
        "inference_time": _times("request_inference_time_seconds"),
        "ttft": _times("time_to_first_token_seconds"),
        # Before 0.11 the time between tokens had the name that sounds like one per request.
        "itl": _times("inter_token_latency_seconds", "time_per_output_token_seconds"),
        "tpot": _times("request_time_per_output_token_seconds"),
        "e2e_time": _times("e2e_request_latency_seconds"),
        "running": _numbers("num_requests_running"),
        "waiting": _numbers("num_requests_waiting"),
        "kv_use": _numbers("kv_cache_usage_perc", "gpu_cache_usage_perc"),  # both are 0 to 1
        "preemptions": _numbers("num_preemptions_total"),
        "requests_ok": _ended("stop", "length", "repetition"),
        "requests_failed": _ended("error"),
        "requests_aborted": _ended("abort"),
        "http_errors": (Series("http_requests_total", where={"status": ("5xx",)}, none_is_zero=True),),
        "prompt_tokens": _numbers("prompt_tokens_total"),
        "generated_tokens": _numbers("generation_tokens_total"),
        "cache_hits": _numbers("prefix_cache_hits_total", "gpu_prefix_cache_hits_total"),
        "cache_queries": _numbers("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
        "process_start": (Series("process_start_time_seconds"),),
    },
    model_label="model_name",
    lengths={
        "input": (Series("vllm:request_prompt_tokens", histogram=True),),
        "output": (Series("vllm:request_generation_tokens", histogram=True),),
    },
)
