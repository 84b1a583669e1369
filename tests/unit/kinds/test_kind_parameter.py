from __future__ import annotations

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from changectl import engines, kinds
from changectl.core.errors import InputError
from changectl.core.settings import Carrier
from changectl.kinds import parameter
from changectl.kinds.parameter import Spec


def spec(**settings: str) -> Spec:
    return Spec.model_validate(settings)


def test_its_example_is_a_change() -> None:
    example = YAML(typ="safe", pure=True).load(parameter.EXAMPLE)["change"]["parameter"]

    assert (
        spec(**{key: str(value) for key, value in example.items()}).describe()
        == "parameter max-num-seqs: absent -> 128"
    )


@pytest.mark.parametrize("name", ["max-num-seqs", "concurrency_limit", "max_num_seqs", "n_parallel", "tp.size"])
def test_an_engines_name_and_a_common_name_are_taken(name: str) -> None:
    assert spec(name=name, to="1").name == name


@pytest.mark.parametrize("name", ["--max-num-seqs", "-np", "a b", "a=1", "", "a;b", "$(a)", "--"])
def test_what_is_not_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        spec(name=name, to="1")


def test_it_is_found_in_the_engines_table_under_every_name() -> None:
    engine = engines.load("vllm")

    wanted = [
        kinds.load("parameter").wanted(spec(name=name, to="8"), engine) for name in ("max_num_seqs", "max-num-seqs")
    ]

    assert {one.label for one in wanted} == {"max-num-seqs"}
    key = wanted[0].key(Carrier("flags", unit="vllm.service"))
    assert key is not None
    assert "--max-num-seqs" in key.names


def test_an_assertion_goes_along() -> None:
    engine = engines.load("vllm")

    asserted = kinds.load("parameter").wanted(spec(**{"name": "max-num-seqs", "from": "absent", "to": "8"}), engine)
    silent = kinds.load("parameter").wanted(spec(name="max-num-seqs", to="absent"), engine)

    assert (asserted.is_asserted, asserted.asserted, asserted.to) == (True, None, "8")
    assert (silent.is_asserted, silent.asserted, silent.to) == (False, None, None)


def test_a_parameter_that_the_engine_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="max-num-seqs"):
        kinds.load("parameter").wanted(spec(name="max-num-sequences", to="8"), engines.load("vllm"))
