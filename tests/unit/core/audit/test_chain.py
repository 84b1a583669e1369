from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from changectl.core.audit.chain import GENESIS, Line, event_hash, verify_chain

TEXT = st.text(max_size=8)
FIELDS = st.tuples(TEXT, st.integers(0, 12), TEXT, TEXT, st.binary(max_size=8))


def chain(rows: list[tuple[str, int, str, str, bytes]]) -> list[Line]:
    lines: list[Line] = []
    prev = GENESIS
    for number, (run, step, kind, at, body) in enumerate(rows, 1):
        lines.append(Line(number, run, step, kind, at, body, prev, event_hash(prev, run, step, kind, at, body)))
        prev = lines[-1].hash
    return lines


@given(st.lists(FIELDS, max_size=6))
def test_what_was_chained_verifies(rows: list[tuple[str, int, str, str, bytes]]) -> None:
    assert verify_chain(chain(rows)) == []


@given(FIELDS, FIELDS)
def test_different_events_have_different_hashes(
    one: tuple[str, int, str, str, bytes], two: tuple[str, int, str, str, bytes]
) -> None:
    assert (event_hash(GENESIS, *one) == event_hash(GENESIS, *two)) == (one == two)


@given(st.lists(FIELDS, min_size=2, max_size=6), st.data())
def test_any_change_of_any_field_shows(rows: list[tuple[str, int, str, str, bytes]], data: st.DataObject) -> None:
    lines = chain(rows)
    index = data.draw(st.integers(0, len(lines) - 1))
    changed = dict(zip(("run", "step", "kind", "at", "body"), data.draw(FIELDS), strict=True))
    forged = dataclasses.replace(lines[index], **changed)
    if forged != lines[index]:
        assert verify_chain([*lines[:index], forged, *lines[index + 1 :]])


@given(st.lists(FIELDS, min_size=3, max_size=6), st.data())
def test_a_removed_or_moved_event_shows(rows: list[tuple[str, int, str, str, bytes]], data: st.DataObject) -> None:
    lines = chain(rows)
    index = data.draw(st.integers(0, len(lines) - 2))
    assert verify_chain([*lines[:index], *lines[index + 1 :]])
    swapped = list(lines)
    swapped[index], swapped[index + 1] = swapped[index + 1], swapped[index]
    assert verify_chain(swapped)


@given(st.lists(FIELDS, min_size=2, max_size=5), st.binary(max_size=4))
def test_a_rehashed_event_breaks_the_link_to_the_next(
    rows: list[tuple[str, int, str, str, bytes]], body: bytes
) -> None:
    first, second, *rest = chain(rows)
    if body != first.body:
        digest = event_hash(first.prev, first.run, first.step, first.kind, first.at, body)
        forged = dataclasses.replace(first, body=body, hash=digest)
        assert [finding.problem for finding in verify_chain([forged, second, *rest])] == ["broken_link"]
