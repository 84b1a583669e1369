from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from changectl.core.judging.conditions import (
    Difference,
    Fingerprint,
    differences,
    must_be_known,
    not_effective,
    single_difference,
    unknown,
)

FACTS = {
    "model": "sha256:aa",
    "engine_version": "0.9",
    "settings": {"max-num-seqs": ["64"], "dtype": ["half"]},
    "environment": {"OMP_NUM_THREADS": "sha256:11"},
    "files": {"/etc/x.yaml": "sha256:22"},
    "levels": {"low": "1 stream"},
    "kernel": None,
}


def changed(**facts: object) -> Fingerprint:
    return Fingerprint({**FACTS, **facts})


A = Fingerprint(FACTS)


def test_equal_conditions_have_no_differences_and_the_same_digest() -> None:
    other = Fingerprint(dict(reversed(FACTS.items())))
    assert differences(A, other) == []
    assert A.digest() == other.digest()
    assert differences(A, Fingerprint.from_json(A.to_json())) == []


def test_a_changed_parameter_is_exactly_one_difference_and_may_be_declared_by_its_name() -> None:
    b = changed(settings={"dtype": ["half"], "max-num-seqs": ["128"]})
    assert differences(A, b) == [Difference("settings.max-num-seqs", ["64"], ["128"])]
    for name in ("max-num-seqs", "settings.max-num-seqs"):
        assert single_difference(A, b, {name}) == []
    assert single_difference(A, b, {"dtype"}) == differences(A, b)


def test_a_second_difference_is_named() -> None:
    b = changed(settings={"max-num-seqs": ["128"], "dtype": ["half"]}, model="sha256:bb")
    assert [str(found) for found in single_difference(A, b, {"max-num-seqs"})] == ["model: sha256:aa -> sha256:bb"]


def test_an_added_and_a_removed_parameter_are_differences() -> None:
    b = changed(settings={"dtype": ["half"], "seed": ["1"]})
    assert [(found.key, found.before, found.after) for found in differences(A, b)] == [
        ("settings.max-num-seqs", ["64"], None),
        ("settings.seed", None, ["1"]),
    ]


def test_a_fact_known_on_one_side_only_is_a_difference_and_unknown_facts_are_named() -> None:
    assert [found.key for found in differences(A, changed(kernel="6.1"))] == ["kernel"]
    assert A.unknown() == ("kernel",)


def test_a_fact_that_either_side_lacks_is_unknown_even_where_nothing_differs() -> None:
    assert unknown(A, changed(kernel="6.1")) == ["kernel"]
    # An empty group beside one that was not read differs in no member.
    assert unknown(Fingerprint({"environment": None}), Fingerprint({"environment": {}})) == ["environment"]


def test_settings_files_and_model_must_be_known_and_nothing_else() -> None:
    assert all(must_be_known(name) for name in ("settings", "settings.x", "files./etc/x.yaml", "model"))
    assert not any(must_be_known(name) for name in ("kernel", "environment", "modelled"))


def test_a_bare_name_declares_settings_variables_and_files_only() -> None:
    b = changed(levels={"low": "2 streams"})
    assert single_difference(A, b, {"low"}) != []


def test_true_and_one_are_different() -> None:
    assert differences(Fingerprint({"x": True}), Fingerprint({"x": 1})) != []


def test_a_declared_change_that_is_nowhere_to_be_seen_is_named() -> None:
    assert not_effective(A, changed(), {"max-num-seqs"}) == ["max-num-seqs"]
    assert not_effective(A, changed(settings={"max-num-seqs": ["128"], "dtype": ["half"]}), {"max-num-seqs"}) == []


@given(st.dictionaries(st.text(min_size=1), st.none() | st.integers() | st.text() | st.lists(st.text())))
def test_any_facts_equal_themselves_after_storing(facts: dict[str, object]) -> None:
    fingerprint = Fingerprint(facts)
    assert differences(fingerprint, Fingerprint.from_json(fingerprint.to_json())) == []
