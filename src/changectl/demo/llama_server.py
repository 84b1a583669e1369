"""Start llama.cpp's own HTTP server, which the package xllamacpp holds without its command line, as llama-server is.

This one file is the command line: llama-server's flags and `LLAMA_ARG_*` variables with its rules (a flag beats a
variable, an unknown flag is `error: invalid argument: X` and exit 1). It imports only the standard library and
xllamacpp, so that it can be copied to any host. `--config FILE` (lines of `long-name: value`, weaker than both) is its
own and not llama-server's. SIGTERM ends it at once with exit 0, cutting what is still being answered.

What a running server tells about its settings (llama.cpp of 2026-10, seen on a real one):

- parallel: GET /props `total_slots`; the number of entries of GET /slots.
- ctx-size: GET /props `default_generation_settings.n_ctx`, GET /slots `n_ctx`, GET /v1/models `meta.n_ctx`, all PER
  SLOT: ctx-size / parallel rounded up to a multiple of 256 (kv-unified: not divided), at most the model's own.
- model: GET /props `model_path`. alias: GET /props `model_alias`, GET /v1/models `data[0].id`, `model` in every answer.
- predict: GET /props `default_generation_settings.params.n_predict`.
- metrics, slots, props: GET /props `endpoint_metrics`, ...; without them GET /metrics and GET /slots answer 501.
- batch-size, ubatch-size, threads, threads-http, cache-ram, timeout and the rest stand in no endpoint and in no metric:
  only the process's arguments and environment show them.

GET /health is 503 `Loading model` while a model loads. Every generated token is one more in the counter
`llamacpp:tokens_predicted_total` of GET /metrics.
"""

from __future__ import annotations

import importlib
import os
import re
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


@dataclass(frozen=True)
class Option:
    """One option: its spellings, its environment variable, and the server parameter it sets.

    `value` is the placeholder in the help text; empty means a switch, whose negative spellings are `off`.
    """

    names: tuple[str, ...]
    value: str
    help: str
    env: str
    attribute: str
    off: tuple[str, ...] = ()


OPTIONS = (
    Option(("-m", "--model"), "FNAME", "model path to load", "MODEL", "model.path"),
    Option(("-a", "--alias"), "STRING", "model name aliases, comma-separated (for the API)", "ALIAS", "model_alias"),
    Option(("--host",), "HOST", "addresses to listen on, comma-separated (default: 127.0.0.1)", "HOST", "hostnames"),
    Option(("--port",), "PORT", "port to listen (default: 9931)", "PORT", "port"),
    Option(("-np", "--parallel"), "N", "number of server slots (default: -1, -1 = auto)", "N_PARALLEL", "n_parallel"),
    Option(("-c", "--ctx-size"), "N", "size of the prompt context (default: 0 = from model)", "CTX_SIZE", "n_ctx"),
    Option(("-b", "--batch-size"), "N", "logical maximum batch size (default: 2048)", "BATCH", "n_batch"),
    Option(("-ub", "--ubatch-size"), "N", "physical maximum batch size (default: 512)", "UBATCH", "n_ubatch"),
    Option(("-n", "--predict", "--n-predict"), "N", "tokens to predict (default: -1)", "N_PREDICT", "n_predict"),
    Option(("-t", "--threads"), "N", "CPU threads for generation (default: -1)", "THREADS", "cpuparams.n_threads"),
    Option(("-tb", "--threads-batch"), "N", "CPU threads for prompt processing", "", "cpuparams_batch.n_threads"),
    Option(("--threads-http",), "N", "threads for HTTP requests (default: -1)", "THREADS_HTTP", "n_threads_http"),
    Option(("-to", "--timeout"), "N", "read/write timeout in seconds (default: 3600)", "TIMEOUT", "timeout_read"),
    Option(("-cram", "--cache-ram"), "N", "maximum cache size in MiB (default: 8192)", "CACHE_RAM", "cache_ram_mib"),
    Option(("-ctk", "--cache-type-k"), "TYPE", "KV cache data type for K", "CACHE_TYPE_K", "cache_type_k"),
    Option(("-ctv", "--cache-type-v"), "TYPE", "KV cache data type for V", "CACHE_TYPE_V", "cache_type_v"),
    Option(("-lv", "--verbosity"), "N", "verbosity threshold of the log (default: 3)", "LOG_VERBOSITY", "verbosity"),
    Option(("--api-key",), "KEY", "API keys, comma-separated (default: none)", "LLAMA_API_KEY", "api_keys"),
    Option(("--metrics",), "", "enable the metrics endpoint", "ENDPOINT_METRICS", "endpoint_metrics"),
    Option(("--props",), "", "enable changes through POST /props", "ENDPOINT_PROPS", "endpoint_props"),
    Option(("--slots",), "", "expose the slots endpoint", "ENDPOINT_SLOTS", "endpoint_slots", ("--no-slots",)),
    Option(("-kvu", "--kv-unified"), "", "one KV buffer", "KV_UNIFIED", "kv_unified", ("-no-kvu", "--no-kv-unified")),
    Option(("--cont-batching",), "", "batch all slots", "CONT_BATCHING", "cont_batching", ("--no-cont-batching",)),
    Option(("--cache-prompt",), "", "cache prompts", "CACHE_PROMPT", "cache_prompt", ("--no-cache-prompt",)),
    Option(("--warmup",), "", "warm up with an empty run", "", "warmup", ("--no-warmup",)),
)

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
TRUTHY, FALSY = ("on", "enabled", "true", "1"), ("off", "disabled", "false", "0")
#: llama-server's own choice where the number of slots is left to it.
AUTO_SLOTS = 4
Settings = dict[str, Any]


def fail(message: str) -> NoReturn:
    """Leave with the exit status llama-server has for whatever is wrong with its arguments or its model."""
    sys.stderr.write(message + "\n")
    raise SystemExit(1)


def variable(option: Option) -> str:
    """Return the name of the option's environment variable; empty if it has none."""
    return option.env if option.env.startswith("LLAMA_") or not option.env else f"LLAMA_ARG_{option.env}"


def integer(text: str) -> int:
    """Read a number as C++ does: leading digits count, the rest is ignored (`4k` is 4)."""
    if not (match := re.match(r"\s*[+-]?\d+", text)) or abs(int(match.group())) >= 2**31:
        raise ValueError("stoi")
    return int(match.group())


def converted(option: Option, text: str) -> Any:
    """Return the value the server parameter takes; raise ValueError with the reason if there is none."""
    if option.value in {"N", "PORT"}:
        return integer(text)
    if option.value == "TYPE":
        if text not in CACHE_TYPES:
            raise ValueError(f"Unsupported cache type: {text}")
        return text
    if option.attribute in {"hostnames", "model_alias", "api_keys"}:
        return [part for part in text.split(",") if part]
    return text


def switched(text: str) -> bool:
    """Read a switch from text."""
    if text.lower() not in TRUTHY + FALSY:
        raise ValueError(f"unknown value for a switch: {text}")
    return text.lower() in TRUTHY


def from_environment(environment: dict[str, str]) -> Settings:
    """Return what the `LLAMA_ARG_*` variables say."""
    found: Settings = {}
    for option in OPTIONS:
        name = variable(option)
        if text := environment.get(name, ""):
            try:
                found[option.attribute] = converted(option, text) if option.value else switched(text)
            except ValueError as problem:
                fail(f'error while handling environment variable "{name}": {problem}\n')
    return found


def from_config(path: str) -> list[str]:
    """Return the lines of a config file as the arguments they stand for."""
    arguments: list[str] = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        fail(f"error: config file {path}: {problem.strerror}")
    for line in lines:
        key, _, value = re.sub(r"(^|\s)#.*", "", line).partition(":")
        key, value = key.strip(), value.strip().strip("\"'")
        if key in {"", "---"}:
            continue
        switch = {"on": [f"--{key}"], "true": [f"--{key}"], "off": [f"--no-{key}"], "false": [f"--no-{key}"]}
        arguments += switch.get(value.lower(), [f"--{key}", value])
    return arguments


def from_arguments(arguments: list[str]) -> tuple[Settings, str | None]:
    """Return what the command line says, and the file `--config` names."""
    found: Settings = {}
    config, left = None, list(arguments)
    while left:
        word = left.pop(0)
        if word.startswith("--"):
            word = word.replace("_", "-")
        option = next((each for each in OPTIONS if word in each.names + each.off), None)
        if option is None and word != "--config":
            fail(f"error: invalid argument: {word}")
        if option is not None and not option.value:
            found[option.attribute] = word in option.names
            continue
        if not left:
            fail(f'error while handling argument "{word}": expected value for argument\n')
        text = left.pop(0)
        if option is None:
            config = text
            continue
        try:
            found[option.attribute] = converted(option, text)
        except ValueError as problem:
            fail(f'error while handling argument "{word}": {problem}\n')
    return found, config


def usage() -> str:
    """Return the help text, in llama-server's layout."""
    lines = ["usage: llama_server.py [options]", "", "----- common and server params -----", ""]
    lines.append(f"{'-h,    --help, --usage':<40}print usage and exit")
    lines.append(f"{'--config FILE':<40}lines of `long-name: value` (not an option of llama-server)")
    for option in OPTIONS:
        short = [f"{name}," for name in option.names + option.off if not name.startswith("--")]
        long = ", ".join(name for name in option.names + option.off if name.startswith("--"))
        head = f"{' '.join(short):<7}{long} {option.value}".strip()
        lines.append(f"{head:<40}{option.help}" if len(head) < 40 else f"{head}\n{'':<40}{option.help}")
        more = [f"allowed values: {', '.join(CACHE_TYPES)}", "(default: f16)"] if option.value == "TYPE" else []
        lines += [f"{'':<40}{line}" for line in (*more, f"(env: {variable(option)})") if line != "(env: )"]
    return "\n".join(lines) + "\n"


def library() -> Any:
    """Return xllamacpp; not imported above: `--help` and a refused argument do without it and answer at once."""
    return importlib.import_module("xllamacpp")


def parameters(settings: Settings) -> Any:
    """Return the server's parameter object filled with the settings."""
    xllamacpp = library()
    filled = xllamacpp.CommonParams()
    filled.port = 9931
    for attribute, value in settings.items():
        *outer, last = attribute.split(".")
        target = getattr(filled, outer[0]) if outer else filled
        if attribute.startswith("cache_type"):
            value = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{value.upper()}")
        setattr(target, last, set(value) if attribute == "model_alias" else value)
    filled.timeout_write = filled.timeout_read
    if settings.get("n_parallel", -1) < 0:
        filled.n_parallel, filled.kv_unified = AUTO_SLOTS, True
    return filled


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM or SIGINT."""
    if {"-h", "--help", "--usage"} & set(arguments):
        sys.stdout.write(usage())
        return
    flags, config = from_arguments(arguments)
    environment = from_environment(dict(os.environ))
    for option in OPTIONS:
        if option.attribute in flags and option.attribute in environment:
            warning = "environment variable is set, but will be overwritten by command line argument"
            sys.stderr.write(f"warn: {variable(option)} {warning} {option.names[-1]}\n")
    settings = {**(from_arguments(from_config(config))[0] if config else {}), **environment, **flags}
    if not settings.get("model.path"):
        fail("error: --model is required")
    filled = parameters(settings)
    try:
        server = library().Server(filled)
    except RuntimeError as problem:
        fail(f"main: exiting: {problem}")
    # A signal may reach one of the server's own threads; the pipe wakes this one whichever it is.
    waiting, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    sys.stderr.write(f"main: server is listening on {server.listening_address}\n")
    waiting.recv(1)
    # Not by way of the library's own end, which waits up to 30 s for streams that are still open.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
