"""A setting is the same setting under its common name, an engine's own, and its flags."""

from __future__ import annotations

import pytest

from changectl.cli._spellings import alike


@pytest.mark.parametrize("name", ["concurrency_limit", "concurrency-limit", "--parallel", "np", "max_num_seqs"])
def test_the_common_name_is_among_the_other_names(name: str) -> None:
    assert "concurrency_limit" in alike(name)


def test_the_common_name_stands_for_every_engines_setting() -> None:
    assert {"max-num-seqs", "parallel"} <= alike("concurrency_limit")


def test_one_engines_name_does_not_stand_for_anothers() -> None:
    assert "parallel" not in alike("max-num-seqs")


def test_a_plain_variable_has_no_other_names() -> None:
    assert alike("MY_OWN_VARIABLE") == frozenset()
