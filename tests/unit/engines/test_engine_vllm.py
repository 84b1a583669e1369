from __future__ import annotations

import pytest
from tests.unit.engines.support import lines, page, text, vllm_pages

from changectl.core.engine import Page
from changectl.engines import load

ENGINE = load("vllm")
SERVE = [
    "/opt/v/bin/python3",
    "/opt/v/bin/vllm",
    "serve",
    "/srv/models/tiny",
    "--max_num_seqs",
    "4",
    "--shutdown-timeout=20",
]


def test_metrics_models_and_start_log_give_the_effective_values() -> None:
    found = ENGINE.effective(vllm_pages(), lines("vllm", "start.log"))

    assert found["max-num-seqs"] == "4"
    assert found["max-model-len"] == "1024"
    assert found["kv-cache-memory-bytes"] == "16777216"
    assert found["gpu-memory-utilization"] == "0.92"
    assert found["enable-prefix-caching"] == "true"
    assert found["enforce-eager"] == "true"
    assert found["served-model-name"] == "words"


def test_the_number_of_sequences_is_not_exposed_without_the_start_log() -> None:
    assert "max-num-seqs" not in ENGINE.effective(vllm_pages())


def test_a_setting_of_several_words_is_not_exposed_rather_than_half_told() -> None:
    log = ["non-default args: {'served_model_name': ['chat', 'chat-large'], 'max_num_seqs': 4}"]

    assert ENGINE.effective({}, log) == {"max-num-seqs": "4"}


def test_a_context_length_left_to_vllm_is_reported_as_the_number_it_chose() -> None:
    length = ENGINE.setting("max-model-len")

    assert ENGINE.took_effect(length, "auto", "2048")
    assert ENGINE.took_effect(length, "-1", "2048")
    assert not ENGINE.took_effect(length, "1024", "2048")


def test_secrets_in_the_start_log_are_not_repeated() -> None:
    log = ["INFO [utils.py:1] non-default args: {'api_key': ['sk-secret'], 'hf_token': 'hf_secret', 'port': 8000}"]
    found = ENGINE.effective({}, log)

    assert found == {"port": "8000"}


def test_the_latest_start_in_the_log_counts() -> None:
    log = ["non-default args: {'max_num_seqs': 4}", "non-default args: {'max_num_seqs': 8}"]

    assert ENGINE.effective({}, log) == {"max-num-seqs": "8"}


def test_a_broken_argument_line_reports_nothing() -> None:
    assert ENGINE.effective({}, ["non-default args: {'max_num_seqs': <object>}"]) == {}


def test_what_acts_beats_what_was_asked_for() -> None:
    # An environment variable overrides the flag; the cache configuration shows the value that acts.
    log = ["non-default args: {'kv_cache_memory_bytes': 67108864}"]

    assert ENGINE.effective(vllm_pages(), log)["kv-cache-memory-bytes"] == "16777216"


def test_it_is_ready_when_it_answered_and_the_counter_moved() -> None:
    assert ENGINE.readiness(vllm_pages(), "words").state == "ready"


def test_health_200_with_a_hanging_engine_is_not_serving() -> None:
    assert ENGINE.readiness(vllm_pages(answer=Page(error="timed out")), "words").state == "not_serving"


def test_a_dead_engine_behind_health_503_is_not_ready() -> None:
    assert ENGINE.readiness(vllm_pages(health=page("", 503)), "words").state == "loading"


def test_a_sleeping_engine_is_not_serving() -> None:
    asleep = text("vllm", "metrics.txt").replace('sleep_state="awake"} 1.0', 'sleep_state="awake"} 0.0')

    assert ENGINE.readiness(vllm_pages(metrics=page(asleep)), "words").state == "not_serving"


def test_a_metrics_page_with_an_error_is_not_a_dead_server() -> None:
    broken = page("Internal Server Error", 500)

    assert ENGINE.readiness(vllm_pages(metrics_before=broken, metrics=broken), "words").state == "ready"


def test_version_capacity_and_counter_come_from_the_recorded_pages() -> None:
    found = ENGINE.capacity(vllm_pages(), lines("vllm", "start.log"))

    assert ENGINE.version(vllm_pages()) == "0.32.0"
    assert ENGINE.version({}, lines("vllm", "start.log")) == "0.32.0"
    assert ENGINE.token_counter(vllm_pages()) == 1882
    assert (found.kv_tokens, found.slots, found.context_per_request) == (2048, 4, 1024)


def test_the_start_log_alone_tells_the_cache_size() -> None:
    assert ENGINE.capacity({}, lines("vllm", "start.log")).kv_tokens == 131072


def test_underscores_and_dashes_are_the_same_in_flags() -> None:
    found = ENGINE.running(SERVE, {})

    assert found["max-num-seqs"] == "4"
    assert found["model"] == "/srv/models/tiny"
    assert ENGINE.drain_seconds(SERVE, {}) == 20
    assert ENGINE.drain_seconds(SERVE[:4], {}) == 0


@pytest.mark.parametrize(
    "name", ["max-num-seqs", "max_num_seqs", "--max-num-seqs", "--max_num_seqs", "concurrency_limit"]
)
def test_every_name_of_a_setting_finds_it(name: str) -> None:
    assert ENGINE.setting(name).name == "max-num-seqs"


def test_short_flags_keep_their_case_and_dash() -> None:
    assert ENGINE.setting("-tp").name == "tensor-parallel-size"


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        (SERVE, ["/opt/v/bin/python3", "/opt/v/bin/vllm", "serve", "--help=all"]),
        (["vllm", "serve", "m"], ["vllm", "serve", "--help=all"]),
        (
            ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"],
            ["python3", "-m", "vllm.entrypoints.openai.api_server", "--help=all"],
        ),
        (["/opt/wrapper", "--port", "1"], []),
        (["bash", "-c", "vllm serve"], []),
    ],
)
def test_help_is_asked_of_the_serving_command(argv: list[str], asked: list[str]) -> None:
    assert ENGINE.help_argv(argv) == asked


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1k", "1000", True),
        ("1K", "1024", True),
        ("1k", "1024", False),
        ("25.6k", "25600", True),
        ("08", "8", True),
        ("auto", "-1", True),
        (None, None, True),
        (None, "8", False),
        ("8", "8 ", True),
    ],
)
def test_numbers_are_compared_parsed(one: str | None, other: str | None, equal: bool) -> None:
    assert ENGINE.same(ENGINE.setting("max-model-len"), one, other) is equal


def test_booleans_and_json_are_compared_by_meaning() -> None:
    assert ENGINE.same(ENGINE.setting("enforce-eager"), "True", "true")
    assert ENGINE.same(ENGINE.setting("override-generation-config"), '{"a": 1, "b": 2}', '{"b":2,"a":1}')
    assert not ENGINE.same(ENGINE.setting("override-generation-config"), '{"a": 1}', '{"a": 2}')


def test_the_help_knows_settings_and_choices() -> None:
    help_text = text("vllm", "help.txt")

    assert ENGINE.knows(help_text, ENGINE.setting("max-num-seqs")) is True
    assert ENGINE.knows(help_text, ENGINE.setting("swap-space")) is False
    assert ENGINE.knows("Config Groups", ENGINE.setting("max-num-seqs")) is None
    assert ENGINE.value_problem(ENGINE.setting("dtype"), "float8", help_text)
    assert ENGINE.value_problem(ENGINE.setting("dtype"), "half", help_text) is None
    assert ENGINE.value_problem(ENGINE.setting("max-model-len"), "auto", help_text) is None
    assert ENGINE.value_problem(ENGINE.setting("gpu-memory-utilization"), "1.5", help_text)


def test_a_variable_that_is_in_no_help_is_neither_known_nor_denied() -> None:
    assert ENGINE.knows(text("vllm", "help.txt"), ENGINE.setting("VLLM_CPU_KVCACHE_SPACE")) is None


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ({"max-num-batched-tokens": "256", "max-num-seqs": "512"}, 1),
        ({"max-num-batched-tokens": "2k", "max-num-seqs": "256"}, 0),
        ({"max-num-batched-tokens": "2048", "max-model-len": "4096"}, 0),
        ({"max-num-batched-tokens": "2048", "max-model-len": "4096", "enable-chunked-prefill": "False"}, 1),
        ({"long-prefill-token-threshold": "5000", "max-model-len": "4096"}, 1),
        ({"max-num-seqs": "512"}, 0),
    ],
)
def test_rules_between_settings_are_told_before_the_stop(values: dict[str, str], broken: int) -> None:
    assert len(ENGINE.cross_rules(values)) == broken


def test_memory_is_what_the_settings_say_outright() -> None:
    share = ENGINE.memory_need({"gpu-memory-utilization": "0.9"}, {})
    explicit = ENGINE.memory_need({"kv-cache-memory-bytes": "16M", "gpu-memory-utilization": "0.9"}, {})

    assert share is not None
    assert share.gpu_fraction == 0.9
    assert explicit is not None
    assert explicit.gpu_bytes == 16 * 1024 * 1024
    assert ENGINE.memory_need({}, {}) is None
