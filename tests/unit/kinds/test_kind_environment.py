from __future__ import annotations

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from changectl import engines, kinds
from changectl.core.settings import Carrier
from changectl.kinds import environment
from changectl.kinds.environment import Spec


def spec(**settings: str) -> Spec:
    return Spec.model_validate(settings)


def test_its_example_is_a_change() -> None:
    example = YAML(typ="safe", pure=True).load(environment.EXAMPLE)["change"]["environment"]

    assert spec(**example).describe() == "environment OMP_NUM_THREADS: 1 -> 2"


@pytest.mark.parametrize("name", ["1A", "A-B", "A=B", "A B", "", "Ä", "A\nB"])
def test_what_is_not_a_variables_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        spec(name=name, to="1")


@pytest.mark.parametrize("value", ["a\nLD_PRELOAD=/tmp/x.so", "a\x00b", "a\rb"])
def test_a_value_cannot_bring_a_second_variable(value: str) -> None:
    with pytest.raises(ValidationError):
        spec(name="A", to=value)


@pytest.mark.parametrize("value", ["a b", 'a "b"', "$HOME", "100%", "a=b", "ä"])
def test_a_value_may_be_any_line(value: str) -> None:
    assert spec(name="A", to=value).to == value


def test_a_variable_that_the_engine_knows_remembers_the_setting_that_it_gives() -> None:
    kind, engine = kinds.load("environment"), engines.load("llamacpp")

    known = kind.wanted(spec(name="LLAMA_ARG_N_PARALLEL", to="2"), engine)
    plain = kind.wanted(spec(name="OMP_NUM_THREADS", to="2"), engine)

    assert known.names == {"LLAMA_ARG_N_PARALLEL", "parallel"}
    assert known.setting is None, "it is written as a variable all the same"
    assert plain.names == {"OMP_NUM_THREADS"}


def test_it_is_looked_for_only_where_variables_live() -> None:
    wanted = kinds.load("environment").wanted(spec(name="OMP_NUM_THREADS", to="2"), engines.load("llamacpp"))

    key = wanted.key(Carrier("env", file="/etc/default/chat"))
    assert key is not None
    assert key.names == ("OMP_NUM_THREADS",)
    assert wanted.key(Carrier("flags", unit="chat.service")) is None
    assert wanted.key(Carrier("env", file="/etc/default/chat", at="OPTS", then="flags")) is None
