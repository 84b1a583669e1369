from __future__ import annotations

from dataclasses import replace

import pytest

from changectl.core.precheck import NOT_EXPOSED, Check, Seen, format_bytes, refusal, refuses

REQUIRED, ADVICE = Check("a", "required"), Check("b", "advice")


def test_failed_and_unknown_refuse_where_required() -> None:
    results = [
        REQUIRED.failed("no"),
        REQUIRED.unknown("?"),
        REQUIRED.passed("yes"),
        REQUIRED.not_applicable("none"),
        ADVICE.failed("no"),
        ADVICE.unknown("?"),
    ]

    assert refuses(results) == results[:2]


def test_a_refusal_names_each_reason_with_what_to_do() -> None:
    results = [REQUIRED.failed("no room", "make some"), REQUIRED.unknown("not read"), ADVICE.failed("no")]

    assert refusal(results) == ["a: no room; make some", "a: not read"]
    assert refusal([REQUIRED.passed("yes"), ADVICE.unknown("?")]) == []


def test_what_others_follow_from_comes_first_and_they_are_listed_after_it() -> None:
    root, other = Check("root", "required"), Check("other", "required")
    unseen = [replace(Check(name, "required").unknown("?"), because="root") for name in ("x", "y")]

    assert refusal([unseen[0], other.failed("full"), root.failed("down", "bring it up"), unseen[1]]) == [
        "root: down; bring it up",
        "not checked because of that, so not passed either: x, y",
        "other: full",
    ]


def test_values_are_shown_as_people_write_them() -> None:
    assert [str(Seen("4")), str(Seen(None)), str(NOT_EXPOSED), str(Seen(known=False))] == [
        "'4'", "absent", "not known (not exposed)", "not known",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (3_100_000_000, "3.1 GB"), (-2_000, "-2.0 kB"), (5e15, "5000.0 TB")]
)
def test_bytes_are_shown_in_decimal_units(count: float, text: str) -> None:
    assert format_bytes(count) == text
