"""llama.cpp's HTTP server (`llama-server`): flags over environment, effective values from /props, /slots, log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from changectl.core.engine import Capacity, FailureLine, MemoryNeed, Pages, Readiness, Source
from changectl.core.settings import Setting, SettingType
from changectl.core.telemetry.engine_series import MetricTable, Series
from changectl.engines import _logs, _process
from changectl.engines._openai import OpenAIEngine

_TOLD_TWICE = ("parallel", "n-ctx-slot")  # by the pages and by the log
_PER_SLOT = "n-ctx-slot"  # reported beside the settings: the context that one request really has
NO_LIMIT = -1  # n_predict
_SLOT_LINE = re.compile(r"n_slots = (?P<slots>\d+), n_ctx_slot = (?P<context>\d+), kv_unified = '(?P<unified>\w+)'")
_CONTEXT_STEP = 256  # the server rounds a context up to a multiple of this
_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32,
          "q4_0": 18 / 32, "iq4_nl": 18 / 32}  # fmt: skip
_MIB = 1024 * 1024


def _row(name: str, flags: str, kind: SettingType = "int", **more: Any) -> Setting:
    env = more.pop("env", None)
    return Setting(name, tuple(flags.split()), env=f"LLAMA_ARG_{env}" if env else None, type=kind, **more)


SETTINGS: tuple[Setting, ...] = (
    _row("parallel", "--parallel -np", env="N_PARALLEL", canonical="concurrency_limit", effective="parallel",
         minimum=-1, note="-1: chosen by the server; the context is split between the slots"),
    _row("ctx-size", "--ctx-size -c", env="CTX_SIZE", canonical="context_len", effective="ctx-size", minimum=0,
         changes_answers=True, note="the total of all slots unless kv-unified; rounded up to a multiple of 256"),
    _row("batch-size", "--batch-size -b", env="BATCH", canonical="batch_tokens", minimum=1),
    _row("ubatch-size", "--ubatch-size -ub", env="UBATCH", minimum=1),
    _row("threads", "--threads -t", env="THREADS", canonical="cpu_threads", minimum=-1),
    _row("threads-batch", "--threads-batch -tb", minimum=-1),
    _row("threads-http", "--threads-http", env="THREADS_HTTP", minimum=-1),
    _row("cpu-mask", "--cpu-mask -C", "str"),
    _row("cpu-range", "--cpu-range -Cr", "str"),
    _row("numa", "--numa", "str", env="NUMA"),
    _row("predict", "--predict --n-predict -n", env="N_PREDICT", canonical="max_output", minimum=-2,
         effective="predict", changes_answers=True),
    _row("kv-unified", "--kv-unified -kvu", "bool", env="KV_UNIFIED", negation="--no-kv-unified"),
    _row("cache-type-k", "--cache-type-k -ctk", "str", env="CACHE_TYPE_K", canonical="kv_dtype",
         changes_answers=True),
    _row("cache-type-v", "--cache-type-v -ctv", "str", env="CACHE_TYPE_V", changes_answers=True),
    _row("cache-ram", "--cache-ram -cram", env="CACHE_RAM", minimum=-1, note="MiB of host memory; 8192 when absent"),
    _row("cache-prompt", "--cache-prompt", "bool", env="CACHE_PROMPT", canonical="prefix_cache",
         negation="--no-cache-prompt"),
    _row("cache-reuse", "--cache-reuse", env="CACHE_REUSE", minimum=0, changes_answers=True),
    _row("cont-batching", "--cont-batching -cb", "bool", env="CONT_BATCHING", negation="--no-cont-batching"),
    _row("gpu-layers", "--gpu-layers --n-gpu-layers -ngl", "str", env="N_GPU_LAYERS", canonical="gpu_layers"),
    _row("split-mode", "--split-mode -sm", "str", env="SPLIT_MODE", canonical="parallelism"),
    _row("tensor-split", "--tensor-split -ts", "str", env="TENSOR_SPLIT"),
    _row("main-gpu", "--main-gpu -mg", env="MAIN_GPU", minimum=0),
    _row("fit", "--fit -fit", "str", env="FIT", note="on: settings left out are adjusted to the free memory"),
    _row("flash-attn", "--flash-attn -fa", "str", env="FLASH_ATTN", changes_answers=True),
    _row("load-mode", "--load-mode -lm", "str", env="LOAD_MODE"),
    _row("mlock", "--mlock", "bool", env="MLOCK", note="removed in newer servers in favour of load-mode"),
    _row("mmap", "--mmap", "bool", env="MMAP", negation="--no-mmap", note="removed in newer servers: load-mode"),
    _row("model", "--model -m", "str", env="MODEL", canonical="model_path", effective="model", changes_answers=True),
    _row("alias", "--alias -a", "str", env="ALIAS", canonical="model_name", effective="alias"),
    _row("timeout", "--timeout -to", env="TIMEOUT", canonical="timeout", minimum=0),
    _row("host", "--host", "str", env="HOST", canonical="host"),
    _row("port", "--port", env="PORT", canonical="port", minimum=1, maximum=65535,
         note="8080 when absent; 9931 in newer servers"),
    _row("metrics", "--metrics", "bool", env="ENDPOINT_METRICS", effective="metrics"),
    _row("slots", "--slots", "bool", env="ENDPOINT_SLOTS", negation="--no-slots", effective="slots"),
    _row("props", "--props", "bool", env="ENDPOINT_PROPS", effective="props"),
    _row("warmup", "--warmup", "bool", negation="--no-warmup"),
    _row("seed", "--seed -s", changes_answers=True),
    _row("temp", "--temp --temperature", "float", env="TEMPERATURE", changes_answers=True),
    _row("context-shift", "--context-shift", "bool", env="CONTEXT_SHIFT", negation="--no-context-shift",
         changes_answers=True),
    _row("sleep-idle-seconds", "--sleep-idle-seconds", minimum=-1),
)  # fmt: skip

FAILURES: tuple[FailureLine, ...] = (
    FailureLine(r"error: invalid argument:", "unknown_flag", "this version has no such flag: see its --help"),
    FailureLine(r"error while handling argument|error: .*(?:invalid|expected) value", "bad_value"),
    FailureLine(r"failed to open GGUF file", "model_missing", "the model file is not there or not readable"),
    FailureLine(r"invalid magic characters", "model_corrupt", "not a GGUF file; 'vers' means a git-lfs pointer file"),
    FailureLine(r"exceeds remaining file size|failed to read key-value pairs|data is not within the file bounds",
                "model_corrupt", "the model file is cut short"),
    FailureLine(r"unknown model architecture", "architecture_unsupported", "this version does not know the model"),
    FailureLine(r"failed to allocate|unable to allocate|ggml_backend_\w+buffer\w*: .*failed", "out_of_memory",
                certain=False),
    *_logs.COMMON,
    FailureLine(r"GGML_ASSERT", "assertion", "a fault inside the engine"),
    FailureLine(r"error loading model|failed to load model|exiting due to|Failed to init server", "start_failed",
                "the cause stands above this line", generic=True),
)  # fmt: skip

# The seconds are added up over requests and not counted. `prompt_tokens_total` leaves out what came from the cache.
METRICS = MetricTable({
    "prefill_time": (Series("llamacpp:prompt_seconds_total", "s"),),
    "decode_time": (Series("llamacpp:tokens_predicted_seconds_total", "s"),),
    "running": (Series("llamacpp:requests_processing"),),
    "waiting": (Series("llamacpp:requests_deferred"),),
    "kv_use": (Series("llamacpp:kv_cache_usage_ratio"),),  # gone from newer servers
    "prompt_tokens": (Series("llamacpp:prompt_tokens_total"),),
    "generated_tokens": (Series("llamacpp:tokens_predicted_total"),),
    "cache_hits": (Series("llamacpp:prompt_tokens_cached_total"),),
    "cache_queries": (Series("llamacpp:prompt_tokens_total", plus=("llamacpp:prompt_tokens_cached_total",)),),
})  # fmt: skip


class LlamaCpp(OpenAIEngine):
    """The server as started by flags or LLAMA_ARG_* variables."""

    name = "llamacpp"
    versions = "b4000 to b10900"
    settings = SETTINGS
    precedence: Sequence[Source] = ("flags", "env")
    failure_lines = FAILURES
    metric_table = METRICS
    counter: ClassVar[str] = "llamacpp:tokens_predicted_total"
    extra_pages: ClassVar[Sequence[tuple[str, str]]] = (("props", "/props"), ("slots", "/slots"))

    def effective(self, pages: Pages, log: Sequence[str] = ()) -> dict[str, str]:
        """Slots, context, model and switches; the total context only where the log tells whether slots share it."""
        props = _object(pages, "props")
        found: dict[str, str] = {}
        for setting, key in (("parallel", "total_slots"), ("model", "model_path"), ("alias", "model_alias")):
            if props.get(key) is not None:
                found[setting] = str(props[key])
        for setting in ("metrics", "slots", "props"):
            if isinstance(props.get(f"endpoint_{setting}"), bool):
                found[setting] = str(props[f"endpoint_{setting}"]).lower()
        limit = _dig(props, "default_generation_settings", "params", "n_predict")
        if limit not in (None, NO_LIMIT):  # builds that keep the limit of each request tell -1 whatever was given
            found["predict"] = str(limit)
        context = _context_per_slot(pages, props)
        if context is not None:
            found[_PER_SLOT] = str(context)
        said = _from_log(log)
        # A log file may hold earlier starts alone: what contradicts the server itself is none of this one's.
        return found | said if all(found.get(name, said.get(name)) == said.get(name) for name in _TOLD_TWICE) else found

    def readiness(self, pages: Pages, expected_model: str | None) -> Readiness:
        """As for every engine, and not asleep: a server that unloaded its model in idle time is not serving."""
        if _object(pages, "props").get("is_sleeping") is True and not pages.get("answer"):
            return Readiness("not_serving", "the server sleeps: its model is unloaded")
        return super().readiness(pages, expected_model)

    def version(self, pages: Pages, log: Sequence[str] = ()) -> str | None:  # noqa: ARG002 - part of the protocol
        """The build, as /props names it."""
        build = _object(pages, "props").get("build_info")
        return str(build) if build else None

    def capacity(self, pages: Pages, log: Sequence[str] = ()) -> Capacity:
        """Slots and context; the tokens of the whole cache where known."""
        values = self.effective(pages, log)
        tokens, slots, each = (self.number(values, name) for name in ("ctx-size", "parallel", _PER_SLOT))
        return Capacity(tokens, slots, each)

    def took_effect(self, setting: Setting, wanted: str, reported: str) -> bool:
        """Equal; a context may be larger, since every slot's share is rounded up; a model path may be shortened."""
        if setting.name == "ctx-size":
            values = {"wanted": wanted, "reported": reported}
            asked, got = self.number(values, "wanted"), self.number(values, "reported")
            # 0 asks for the model's own length, which any number fulfils.
            return asked is not None and got is not None and (asked == 0 or _rounds_to(asked, got))
        if setting.name == "parallel" and self.same(setting, wanted, "-1"):
            return True
        return super().took_effect(setting, wanted, reported)

    def cross_rules(self, values: Mapping[str, str]) -> list[str]:
        """A physical batch larger than the logical one, or a context share that leaves nothing to answer in."""
        found = []
        batch, micro = self.number(values, "batch-size"), self.number(values, "ubatch-size")
        if batch is not None and micro is not None and micro > batch:
            found.append(f"ubatch-size {micro} is larger than batch-size {batch}: the server cuts it down silently")
        context, slots = self.number(values, "ctx-size"), self.number(values, "parallel")
        shared = values.get("kv-unified", "false").lower() in {"true", "1", "on"}
        if context and slots and slots > 0 and not shared and context // slots < 1:
            found.append(f"ctx-size {context} cannot be split between {slots} slots")
        return found

    def memory_need(self, values: Mapping[str, str], facts: Mapping[str, Any]) -> MemoryNeed | None:
        """The context cache from the model's own figures, and the prompt cache in host memory."""
        cache = _cache_bytes(self.number(values, "ctx-size"), values, facts)
        if cache is None:
            return None
        saved = self.number(values, "cache-ram")
        prompts = max(0, 8192 if saved is None else saved) * _MIB
        how = "context x layers x (key + value width), and cache-ram"
        if values.get("gpu-layers", "auto") == "0":
            return MemoryNeed(cache + prompts, 0, how=how)
        # With layers on a GPU the cache lies there; without one it lies in host memory. The caller knows which.
        return MemoryNeed(prompts, cache, how=how)

    def help_argv(self, argv: Sequence[str]) -> list[str]:
        """The same program with --help alone."""
        words = _process.program(argv)
        return [*words, "--help"] if words else []


def _object(pages: Pages, name: str) -> dict[str, Any]:
    document = pages[name].json() if name in pages else None
    return document if isinstance(document, dict) else {}


def _dig(document: Any, *keys: str) -> Any:
    """The value at a place in nested objects; None where any part is missing."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _context_per_slot(pages: Pages, props: dict[str, Any]) -> int | None:
    slots = pages["slots"].json() if "slots" in pages else None
    told = [_dig(row, "n_ctx") for row in slots] if isinstance(slots, list) else []
    if told and all(isinstance(size, int) for size in told):
        return int(min(told))
    context = _dig(props, "default_generation_settings", "n_ctx")
    return int(context) if isinstance(context, int) else None


def _from_log(log: Sequence[str]) -> dict[str, str]:
    matches = [match for line in log if (match := _SLOT_LINE.search(line))]
    if not matches:
        return {}
    slots, context, unified = matches[-1]["slots"], int(matches[-1]["context"]), matches[-1]["unified"] == "true"
    total = context if unified else context * int(slots)
    return {"parallel": slots, _PER_SLOT: str(context), "ctx-size": str(total), "kv-unified": str(unified).lower()}


def _rounds_to(asked: int, got: int) -> bool:
    # Rounding is per slot, and the number of slots is not known here; 64 slots are more than anyone runs.
    return asked == got or (got > asked and got % _CONTEXT_STEP == 0 and got - asked < _CONTEXT_STEP * 64)


def _cache_bytes(context: int | None, values: Mapping[str, str], facts: Mapping[str, Any]) -> int | None:
    """Bytes of keys and values for the whole context; None where a figure is missing or the architecture is special."""
    kind = facts.get("general.architecture")

    def figure(key: str, otherwise: int = 0) -> int:
        found = facts.get(f"{kind}.{key}", otherwise)
        return found if isinstance(found, int) and found > 0 else 0

    layers, heads, width = (figure(key) for key in ("block_count", "attention.head_count", "embedding_length"))
    kv_heads = figure("attention.head_count_kv", heads)
    if not (context and layers and heads and kv_heads and width):
        return None
    key_width, value_width = (figure(f"attention.{name}_length", width // heads) for name in ("key", "value"))
    key_bytes, value_bytes = (_BYTES.get(values.get(f"cache-type-{letter}", "f16"), 0.0) for letter in "kv")
    if not (key_width and value_width and key_bytes and value_bytes):
        return None
    return int(context * layers * kv_heads * (key_width * key_bytes + value_width * value_bytes))


ENGINE = LlamaCpp()
