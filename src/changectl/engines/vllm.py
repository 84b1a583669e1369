"""vLLM's OpenAI server (`vllm serve`): flags over a YAML file; effective values from its start log and metrics."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from changectl.core.engine import Capacity, Cause, FailureLine, MemoryNeed, Pages, Readiness, Source
from changectl.core.settings import Setting
from changectl.engines import _logs, _process, _values
from changectl.engines._openai import OpenAIEngine
from changectl.engines._vllm_metrics import METRICS
from changectl.engines._vllm_settings import SETTINGS

_START = r"vLLM API server version|non-default args:"
_ARGUMENTS = re.compile(r"non-default args:\s*(?P<dict>\{.*\})\s*$")
_VERSION = re.compile(r"vLLM API server version (?P<version>\S+)|\bversion\s+(?P<banner>\d+\.\d+\.\S+)")
_KV_TOKENS = re.compile(r"KV cache size: (?P<tokens>[\d,]+) tokens")
_DEPTHS = ("Worker", "VllmWorker", "RayWorker", "EngineCore", "APIServer")  # processes, deepest first

# What the metrics page says about settings: setting -> label of vllm:cache_config_info.
_CACHE_LABELS = {
    "block-size": "block_size",
    "gpu-memory-utilization": "gpu_memory_utilization",
    "kv-cache-dtype": "cache_dtype",
    "kv-cache-memory-bytes": "kv_cache_memory_bytes",
    "num-gpu-blocks-override": "num_gpu_blocks_override",
    "enable-prefix-caching": "enable_prefix_caching",
    "prefix-caching-hash-algo": "prefix_caching_hash_algo",
}

FAILURES: tuple[FailureLine, ...] = (
    FailureLine(r"unrecognized arguments:", "unknown_flag", "this version has no such flag: see vllm serve --help=all"),
    FailureLine(r"error: argument .*(?:invalid|expected)", "bad_value", "the argument parser refuses the value"),
    FailureLine(r"warming up sampler", "gpu_out_of_memory", "lower max-num-seqs or gpu-memory-utilization"),
    FailureLine(r"is less than desired (?:GPU|CPU) memory utilization", "memory_taken",
                "another process, perhaps a leftover of the earlier start, holds memory; or lower the share"),
    FailureLine(r"is less than requested memory for kv", "host_memory_short", "lower kv-cache-memory-bytes"),
    FailureLine(r"larger than the (?:maximum number of tokens that can be stored|available KV cache memory)|"
                r"To serve at least one request with the models?'?s? max seq len", "kv_too_small",
                "lower max-model-len (the line names the largest that fits) or give the cache more memory"),
    FailureLine(r"No available memory for the cache blocks", "kv_too_small", "raise gpu-memory-utilization"),
    FailureLine(r"max_num_batched_tokens .* (?:is smaller than max_model_len|must be greater than)", "cross_rule",
                "raise max-num-batched-tokens or lower the other setting"),
    FailureLine(r"greater than the derived max_model_len", "context_too_long",
                "lower max-model-len to what the model was made for: the line names it"),
    FailureLine(r"HeaderTooLarge|MetadataIncompleteBuffer|Error while deserializing header", "model_corrupt",
                "a safetensors file is cut short, or a git-lfs pointer file"),
    FailureLine(r"Repo id must be|not a valid model identifier|is not a local folder|HFValidationError",
                "model_missing", "the model folder does not exist: vLLM then takes the path for a hub name",
                certain=False),
    FailureLine(r"Model architectures .*(?:not supported|failed to be inspected)", "architecture_unsupported",
                certain=False),
    FailureLine(r"corrupted compilation artifact", "compile_cache", "delete the torch_compile_cache folder",
                certain=False),
    FailureLine(r"Failed to infer device type", "no_gpu", "the process does not see a GPU"),
    FailureLine(r"\[Errno 98\]", "port_in_use", "another process holds the port"),
    *_logs.COMMON,
    FailureLine(r"Engine core initialization failed|EngineCore failed to start|EngineDeadError|"
                r"EngineCore encountered an issue|WorkerProc initialization failed|Failed core proc", "start_failed",
                "the cause stands above this line", generic=True),
)  # fmt: skip


class Vllm(OpenAIEngine):
    """`vllm serve` and its older module form; `_` and `-` are the same in flag names, 1k is 1000 and 1K is 1024."""

    name = "vllm"
    versions = "0.9 to 0.32"
    settings: Sequence[Setting] = SETTINGS
    precedence: Sequence[Source] = ("flags", "file", "env")
    underscores = True
    suffixes: ClassVar[bool] = True
    failure_lines = FAILURES
    metric_table = METRICS
    counter: ClassVar[str] = "vllm:generation_tokens_total"
    extra_pages: ClassVar[Sequence[tuple[str, str]]] = (("version", "/version"),)

    def effective(self, pages: Pages, log: Sequence[str] = ()) -> dict[str, str]:
        """From weak to strong: the start log's arguments, the cache configuration, the list of models.

        A setting left at its default stands in none of them: then it is not exposed, which is not the same as absent.
        """
        found = _arguments(log)
        metrics = pages["metrics"].metrics() if "metrics" in pages else None
        labels = metrics.labels("vllm:cache_config_info") if metrics else None
        for setting, label in _CACHE_LABELS.items():
            value = (labels or {}).get(label, "None")
            if value != "None":
                found[setting] = value.lower() if value in {"True", "False"} else value
        length = _model_row(pages).get("max_model_len")
        return found | ({"max-model-len": str(length)} if length is not None else {})

    def readiness(self, pages: Pages, expected_model: str | None) -> Readiness:
        """As for every engine; a sleeping server is healthy and answers nothing."""
        metrics = pages["metrics"].metrics() if "metrics" in pages else None
        asleep = metrics and metrics.find("vllm:engine_sleep_state") and not metrics.total(
            "vllm:engine_sleep_state", sleep_state="awake"
        )  # fmt: skip
        return Readiness("not_serving", "the engine sleeps") if asleep else super().readiness(pages, expected_model)

    def version(self, pages: Pages, log: Sequence[str] = ()) -> str | None:
        """From /version, else from the start log."""
        document = pages["version"].json() if "version" in pages else None
        if isinstance(document, dict) and document.get("version"):
            return str(document["version"])
        found = [match for line in log if (match := _VERSION.search(line))]
        return (found[-1]["version"] or found[-1]["banner"]) if found else None

    def capacity(self, pages: Pages, log: Sequence[str] = ()) -> Capacity:
        """The size of the context cache, from the metrics page or the start log."""
        metrics = pages["metrics"].metrics() if "metrics" in pages else None
        labels = (metrics.labels("vllm:cache_config_info") if metrics else None) or {}
        tokens = _values.parse_float(labels.get("kv_cache_size_tokens", ""))
        if tokens is None and "num_gpu_blocks" in labels and "block_size" in labels:
            blocks, size = (_values.parse_float(labels[key]) for key in ("num_gpu_blocks", "block_size"))
            tokens = blocks * size if blocks is not None and size is not None else None
        lines = [match["tokens"] for line in log if (match := _KV_TOKENS.search(line))]
        if tokens is None and lines:
            tokens = float(lines[-1].replace(",", ""))
        values = self.effective(pages, log)
        slots, length = (self.number(values, name) for name in ("max-num-seqs", "max-model-len"))
        return Capacity(tokens, slots, length)

    def running(self, argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
        """As for every engine, and the model given as a bare word after `serve`."""
        found = super().running(argv, environ)
        words = list(argv)
        if "model" not in found and "serve" in words[:-1]:
            after = words[words.index("serve") + 1]
            found |= {} if after.startswith("-") else {"model": after}
        return found

    def drain_seconds(self, argv: Sequence[str], environ: Mapping[str, str]) -> float:
        """`--shutdown-timeout`; 0 (running requests are cut) when absent."""
        text = self.running(argv, environ).get("shutdown-timeout")
        return float(_values.parse_int(text) or 0) if text else 0.0

    def help_argv(self, argv: Sequence[str]) -> list[str]:
        """`vllm serve --help=all`: plain --help lists only the groups."""
        words = _process.program(argv)
        rest = list(argv[len(words) :])
        if words and rest[:1] == ["serve"]:
            return [*words, "serve", "--help=all"]
        return [*words, "--help=all"] if words and words[-1].startswith("vllm.") else []

    def took_effect(self, setting: Setting, wanted: str, reported: str) -> bool:
        """As for every engine; a context length that vLLM chooses itself is reported as the number it chose."""
        chosen = setting.name == "max-model-len" and self.same(setting, wanted, "-1")
        return chosen or super().took_effect(setting, wanted, reported)

    def same(self, setting: Setting, one: str | None, other: str | None) -> bool:
        """Numbers parsed; `auto` is -1 for the context length."""
        if setting.name == "max-model-len":
            one, other = ("-1" if text is not None and text.lower() == "auto" else text for text in (one, other))
        return super().same(setting, one, other)

    def value_problem(self, setting: Setting, value: str, help_text: str | None = None) -> str | None:
        """As for every engine; the context length may be `auto`."""
        if setting.name == "max-model-len" and value.lower() == "auto":
            return None
        return super().value_problem(setting, value, help_text)

    def cross_rules(self, values: Mapping[str, str]) -> list[str]:
        """The rules that vLLM's own configuration checks, told before the service is stopped."""
        found = []
        batched, sequences, length = (
            self.number(values, name) for name in ("max-num-batched-tokens", "max-num-seqs", "max-model-len")
        )
        if batched is not None and sequences is not None and batched < sequences:
            found.append(f"max-num-batched-tokens {batched} is less than max-num-seqs {sequences}")
        chunked = values.get("enable-chunked-prefill", "true").lower()
        if chunked == "false" and batched is not None and length is not None and 0 < batched < length:
            found.append(
                f"max-num-batched-tokens {batched} is less than max-model-len {length} without chunked prefill"
            )
        threshold = self.number(values, "long-prefill-token-threshold")
        if threshold is not None and length is not None and 0 < length < threshold:
            found.append(f"long-prefill-token-threshold {threshold} is greater than max-model-len {length}")
        return found

    def memory_need(self, values: Mapping[str, str], facts: Mapping[str, Any]) -> MemoryNeed | None:  # noqa: ARG002
        """What the settings say outright: the cache in bytes, or the share of each GPU."""
        cache = self.number(values, "kv-cache-memory-bytes")
        share = _values.parse_float(values.get("gpu-memory-utilization", ""))
        if cache is not None:
            return MemoryNeed(gpu_bytes=cache, how="kv-cache-memory-bytes")
        return None if share is None else MemoryNeed(gpu_fraction=share, how="gpu-memory-utilization x each GPU")

    def deepest_cause(self, log: Sequence[str]) -> Cause | None:
        """The first exception of the deepest process of the latest start that shows any."""
        for lines in _logs.last_start(log, _START):
            cause = _logs.first_exception(lines, _DEPTHS, self.failure_lines)
            cause = cause or _logs.first_known(lines, self.failure_lines)
            if cause is not None:
                return cause
        return None


def _arguments(log: Sequence[str]) -> dict[str, str]:
    """The start log's own list of arguments; only rows of the table, so that no token gets out."""
    known = {row.key: row.name for row in SETTINGS if row.key}
    for line in reversed(log):
        match = _ARGUMENTS.search(line)
        if match is None:
            continue
        try:
            given = ast.literal_eval(match["dict"])
        except (ValueError, SyntaxError):
            return {}
        named = ((known.get(key.replace("_", "-")), _text(value)) for key, value in given.items())
        return {name: text for name, text in named if name is not None and text is not None}
    return {}


def _text(value: Any) -> str | None:
    """As on a command line; None: no value, or several words, which no single one can be compared with."""
    if isinstance(value, (list, tuple)):
        return _text(value[0]) if len(value) == 1 else None
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else None if value is None else str(value)


def _model_row(pages: Pages) -> dict[str, Any]:
    document = pages["models"].json() if "models" in pages else None
    rows = document.get("data") if isinstance(document, dict) else None
    row = rows[0] if isinstance(rows, list) and rows else {}
    return row if isinstance(row, dict) else {}


ENGINE = Vllm()
