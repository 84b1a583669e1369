from __future__ import annotations

import pytest

from changectl.core.engine import Engine
from changectl.core.errors import InputError
from changectl.engines import load

TABLES = [load("llamacpp"), load("vllm")]


@pytest.mark.parametrize("engine", TABLES, ids=lambda engine: engine.name)
def test_every_name_leads_to_exactly_one_row(engine: Engine) -> None:
    for row in engine.settings:
        for word in (row.name, row.canonical, row.env, row.key, *row.flags):
            if word:
                assert engine.setting(word) is row


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(InputError, match="max-num-seqs"):
        TABLES[1].setting("max-num-seq")
    with pytest.raises(InputError, match="known:"):
        TABLES[1].setting("zzz")


LLAMA, VLLM = TABLES
ARGV = ["/opt/llama-server", "--keep", "4", "--parallel", "4", "--metrics", "--alias", "--parallel", "-c", "4096"]


def without(engine: Engine, argv: list[str], name: str) -> list[str]:
    return engine.command_without(argv, engine.setting(name))


def test_a_settings_own_words_are_taken_out_of_the_command_by_their_place() -> None:
    # "4" is another flag's value too, and "--parallel" is the value of --alias.
    rest = ["/opt/llama-server", "--keep", "4", "--metrics", "--alias", "--parallel", "-c", "4096"]
    assert without(LLAMA, ARGV, "parallel") == rest
    assert without(LLAMA, ["x", "-np", "4", "-np", "8", "y"], "parallel") == ["x", "y"]
    assert without(LLAMA, ["x", "--parallel=4", "y"], "parallel") == ["x", "y"]
    assert LLAMA.command_without(ARGV, None) == ARGV


def test_a_switch_takes_its_negation_with_it_and_a_value_only_where_one_stands() -> None:
    assert without(LLAMA, ["x", "--no-mmap", "--metrics", "y"], "mmap") == ["x", "--metrics", "y"]
    assert without(LLAMA, ["x", "--metrics", "y"], "metrics") == ["x", "y"]
    assert without(VLLM, ["x", "--enforce-eager", "false", "y"], "enforce-eager") == ["x", "y"]
    assert VLLM.running(["x", "--enforce-eager", "False"], {})["enforce-eager"] == "False"


def test_underscores_are_dashes_where_the_engine_takes_them_so() -> None:
    assert without(VLLM, ["vllm", "serve", "--max_num_seqs", "4", "m"], "max-num-seqs") == ["vllm", "serve", "m"]


def test_a_flag_at_the_end_without_a_value_is_no_accident() -> None:
    assert without(LLAMA, ["x", "--parallel"], "parallel") == ["x"]
    assert "parallel" not in LLAMA.running(["x", "--parallel"], {})
