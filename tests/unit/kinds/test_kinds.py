from __future__ import annotations

import pytest

from changectl import kinds
from changectl.core.errors import InputError


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        kinds.load("paramter")

    assert caught.value.problems[0].hint == "did you mean `parameter`? known: environment, parameter"


@pytest.mark.parametrize("name", ["__init__", "../core/plan", "os", ""])
def test_only_files_of_the_folder_are_kinds(name: str) -> None:
    with pytest.raises(InputError):
        kinds.load(name)


def test_every_kind_has_a_grammar() -> None:
    assert set(kinds.specs()) == set(kinds.names())
