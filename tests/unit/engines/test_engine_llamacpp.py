from __future__ import annotations

import pytest
from tests.unit.engines.support import lines, llamacpp_pages, page, text

from changectl.core.engine import Page
from changectl.engines import load

ENGINE = load("llamacpp")
ARGV = ["/opt/llama-server", "-m", "/srv/m.gguf", "--parallel=4", "-c", "4096", "--no-slots", "--metrics"]
ARGV += ["--port", "8080"]
FACTS = {
    "general.architecture": "llama",
    "llama.block_count": 32,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
    "llama.embedding_length": 4096,
}


def test_a_recorded_server_reports_slots_context_and_switches() -> None:
    found = ENGINE.effective(llamacpp_pages(), lines("llamacpp", "start.log"))

    assert found["parallel"] == "2"
    assert found["ctx-size"] == "512"
    assert found["n-ctx-slot"] == "256"
    assert found["metrics"] == "true"
    assert found["kv-unified"] == "false"
    assert "predict" not in found  # -1 is told whatever was given
    assert found["model"] == "tiny.gguf"


def test_without_the_start_log_the_total_context_is_not_guessed() -> None:
    found = ENGINE.effective(llamacpp_pages())

    assert "ctx-size" not in found
    assert found["n-ctx-slot"] == "256"


def test_the_log_of_another_start_tells_nothing_about_this_one() -> None:
    other = ["I srv    load_model: initializing, n_slots = 8, n_ctx_slot = 256, kv_unified = 'false'"]

    assert ENGINE.effective(llamacpp_pages(), other) == ENGINE.effective(llamacpp_pages())
    assert ENGINE.capacity(llamacpp_pages(), other).kv_tokens is None


def test_a_shared_cache_is_not_multiplied_by_its_slots() -> None:
    log = ["I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 4096, kv_unified = 'true'"]

    assert ENGINE.effective({}, log)["ctx-size"] == "4096"


def test_nothing_is_reported_from_pages_that_failed() -> None:
    pages = llamacpp_pages(props=Page(error="timed out"), slots=Page(status=501, body="{}"))

    assert ENGINE.effective(pages) == {}


def test_it_is_ready_when_it_answered_and_the_counter_moved() -> None:
    found = ENGINE.readiness(llamacpp_pages(), "tiny.gguf")

    assert found.state == "ready"
    assert "2 tokens" in found.detail


def test_a_loading_model_is_loading() -> None:
    pages = llamacpp_pages(health=page(text("llamacpp", "loading.json"), 503))

    assert ENGINE.readiness(pages, None).state == "loading"


def test_a_refused_connection_is_loading() -> None:
    assert ENGINE.readiness({"health": Page(error="connection refused")}, None).state == "loading"


def test_another_model_is_the_wrong_model() -> None:
    assert ENGINE.readiness(llamacpp_pages(), "chat").state == "wrong_model"


def test_health_without_an_answer_is_not_serving() -> None:
    hanging = llamacpp_pages(answer=Page(error="timed out after 60 s"))

    assert ENGINE.readiness(hanging, None).state == "not_serving"


def test_an_answer_that_moves_no_counter_is_not_serving() -> None:
    still = page(text("llamacpp", "metrics.txt"))

    assert ENGINE.readiness(llamacpp_pages(metrics_before=still), None).state == "not_serving"


def test_a_metrics_page_that_is_off_does_not_stand_in_the_way() -> None:
    off = page('{"error":{"code":501}}', 501)
    found = ENGINE.readiness(llamacpp_pages(metrics_before=off, metrics=off), None)

    assert found.state == "ready"
    assert "not exposed" in found.detail


def test_an_error_body_with_status_200_is_no_answer() -> None:
    assert ENGINE.readiness(llamacpp_pages(answer=page('{"error": {"code": 500}}')), None).state == "not_serving"


def test_pages_never_asked_for_are_not_ready() -> None:
    assert ENGINE.readiness({}, None).state != "ready"


def test_the_counter_comes_from_the_recorded_page() -> None:
    assert ENGINE.token_counter(llamacpp_pages()) == 16
    assert ENGINE.token_counter({}) is None


def test_version_and_capacity_are_read() -> None:
    assert ENGINE.version(llamacpp_pages()) == "b0-unknown"
    found = ENGINE.capacity(llamacpp_pages(), lines("llamacpp", "start.log"))

    assert (found.kv_tokens, found.slots, found.context_per_request) == (512, 2, 256)


def test_flags_beat_environment_and_negations_count() -> None:
    found = ENGINE.running(ARGV, {"LLAMA_ARG_N_PARALLEL": "9", "LLAMA_ARG_THREADS": "3", "HOME": "/"})

    assert found["parallel"] == "4"
    assert found["threads"] == "3"
    assert found["slots"] == "false"
    assert found["metrics"] == "true"
    assert found["port"] == "8080"


def test_the_last_of_repeated_flags_counts() -> None:
    assert ENGINE.running(["x", "-np", "1", "--parallel", "2"], {})["parallel"] == "2"


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        (ARGV, ["/opt/llama-server", "--help"]),
        (
            ["/usr/bin/python3", "-u", "/opt/serve.py", "--port", "1"],
            ["/usr/bin/python3", "-u", "/opt/serve.py", "--help"],
        ),
        (
            ["python3.11", "-X", "dev", "-m", "pkg.server", "-m", "x"],
            ["python3.11", "-X", "dev", "-m", "pkg.server", "--help"],
        ),
        (["/bin/bash", "-c", "exec llama-server"], []),
        (["python3", "-c", "import x"], []),
        ([], []),
    ],
)
def test_help_is_asked_of_the_program_alone(argv: list[str], asked: list[str]) -> None:
    assert ENGINE.help_argv(argv) == asked


def test_the_help_lists_known_settings_and_denies_removed_ones() -> None:
    help_text = text("llamacpp", "help.txt")

    assert ENGINE.knows(help_text, ENGINE.setting("parallel")) is True
    assert ENGINE.knows(help_text, ENGINE.setting("--mmap")) is False


def test_another_programs_help_says_nothing() -> None:
    assert ENGINE.knows("usage: cat [FILE]\n  --help  show this\n", ENGINE.setting("parallel")) is None
    assert ENGINE.knows("", ENGINE.setting("parallel")) is None


@pytest.mark.parametrize(
    ("name", "value", "fine"),
    [
        ("cache-type-k", "q8_0", True),
        ("cache-type-k", "q3", False),
        ("cache-type-k", "nonsense", False),
        ("split-mode", "row", True),
        ("split-mode", "rows", False),
        ("parallel", "8", True),
        ("parallel", "eight", False),
        ("parallel", "-2", False),
        ("metrics", "maybe", False),
    ],
)
def test_values_are_held_against_type_range_and_the_helps_choices(name: str, value: str, fine: bool) -> None:
    problem = ENGINE.value_problem(ENGINE.setting(name), value, text("llamacpp", "help.txt"))

    assert (problem is None) == fine


FLASH = "-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')\n"


@pytest.mark.parametrize(("value", "fine"), [("auto", True), ("on", True), ("1", True), ("maybe", False)])
def test_choices_in_brackets_count_and_other_words_for_on_and_off_are_on_and_off(value: str, fine: bool) -> None:
    assert (ENGINE.value_problem(ENGINE.setting("flash-attn"), value, FLASH) is None) == fine


def test_a_mention_in_another_options_words_is_no_list_of_choices() -> None:
    mention = "--draft TYPE                see --cache-type-k {one,two}\n" + text("llamacpp", "help.txt")

    assert ENGINE.value_problem(ENGINE.setting("cache-type-k"), "q8_0", mention) is None
    assert ENGINE.value_problem(ENGINE.setting("cache-type-k"), "one", mention) is not None


def test_words_that_no_list_announces_allow_anything() -> None:
    assert ENGINE.value_problem(ENGINE.setting("numa"), "mirror", "--numa TYPE   try [some] things: a, b\n") is None
    listed = "--numa TYPE   try things; possible choices: 'distribute', 'isolate', numactl. More words.\n"
    assert ENGINE.value_problem(ENGINE.setting("numa"), "mirror", listed) is not None
    assert ENGINE.value_problem(ENGINE.setting("numa"), "numactl", listed) is None


@pytest.mark.parametrize(
    ("wanted", "reported", "effective"),
    [("512", "512", True), ("500", "512", True), ("0", "4096", True), ("4096", "512", False), ("512", "511", False)],
)
def test_a_context_rounded_up_took_effect_and_a_smaller_one_did_not(
    wanted: str, reported: str, effective: bool
) -> None:
    assert ENGINE.took_effect(ENGINE.setting("context_len"), wanted, reported) is effective


def test_the_context_cache_is_computed_from_the_models_figures() -> None:
    need = ENGINE.memory_need({"ctx-size": "8192", "gpu-layers": "0", "cache-ram": "0"}, FACTS)

    # 8192 tokens x 32 layers x 8 heads x (128 + 128) x 2 bytes
    assert need is not None
    assert need.host_bytes == 8192 * 32 * 8 * 256 * 2


def test_a_quantised_cache_is_smaller() -> None:
    full = ENGINE.memory_need({"ctx-size": "8192", "cache-ram": "0"}, FACTS)
    small = ENGINE.memory_need(
        {"ctx-size": "8192", "cache-ram": "0", "cache-type-k": "q8_0", "cache-type-v": "q8_0"}, FACTS
    )

    assert full is not None
    assert full.gpu_bytes is not None
    assert small is not None
    assert small.gpu_bytes is not None
    assert small.gpu_bytes == full.gpu_bytes * 34 // 64


@pytest.mark.parametrize(
    ("values", "facts"),
    [({"ctx-size": "8192"}, {}), ({}, FACTS), ({"ctx-size": "8192", "cache-type-k": "odd"}, FACTS),
     ({"ctx-size": "8192"}, FACTS | {"llama.attention.head_count_kv": [8, 4]})],
)  # fmt: skip
def test_memory_is_not_computed_from_missing_figures(values: dict[str, str], facts: dict[str, object]) -> None:
    assert ENGINE.memory_need(values, facts) is None


def test_rules_between_settings_are_told() -> None:
    assert ENGINE.cross_rules({"batch-size": "256", "ubatch-size": "512"})
    assert ENGINE.cross_rules({"ctx-size": "2", "parallel": "4"})
    assert ENGINE.cross_rules({"batch-size": "2048", "ubatch-size": "512", "ctx-size": "4096", "parallel": "4"}) == []


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ("truncated-model", "model_corrupt"),
        ("pointer-file", "model_corrupt"),
        ("missing-model", "model_missing"),
        ("port-in-use", "port_in_use"),
        ("unknown-flag", "unknown_flag"),
    ],
)
def test_recorded_failed_starts_show_their_cause(case: str, cause: str) -> None:
    found = ENGINE.deepest_cause(lines("llamacpp", f"start-{case}.log"))

    assert found is not None
    assert found.cause == cause
    assert "exiting due to" not in found.line


def test_a_good_start_has_no_cause() -> None:
    assert ENGINE.deepest_cause(lines("llamacpp", "start.log")) is None


def test_probes_ask_for_one_answer_between_two_readings_of_the_counter() -> None:
    requests = ENGINE.probes("http://127.0.0.1:8080/", "chat", {"bearer": "t"})
    names = [request.name for request in requests]

    assert names.index("metrics_before") < names.index("answer") < names.index("metrics")
    assert all(request.headers["Authorization"] == "Bearer t" for request in requests)
    assert all(request.url.startswith("http://127.0.0.1:8080/") and "//v1" not in request.url for request in requests)
    assert "t" not in [name for request in requests for name in request.as_args() if name == "token"]


def test_a_mere_look_sends_no_request_for_tokens() -> None:
    assert all(request.method == "GET" for request in ENGINE.probes("http://h:1", None, None, answer=False))


def test_the_module_flag_of_python_is_not_the_model_flag_of_the_engine() -> None:
    argv = ["/usr/bin/python3", "-m", "some.launcher", "--parallel", "4", "-m", "/srv/m.gguf"]

    assert load("llamacpp").running(argv, {}) == {"parallel": "4", "model": "/srv/m.gguf"}
