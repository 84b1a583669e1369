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
