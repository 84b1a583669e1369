"""Whether one member of a balancer can be spared, by what all of them have in work."""

from __future__ import annotations

import pytest

from changectl.core.spare import LAST_MEMBER, OTHERS_FULL, OTHERS_UNKNOWN, MemberLoad, cannot_spare


def load(in_work: float | None, slots: float | None = 4, name: str = "gpu") -> MemberLoad:
    return MemberLoad(name, in_work, slots)


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (load(0), [load(4)]),
        (load(0, None), [load(1, None)]),
        (load(2), [load(2)]),
        (load(3), [load(3), load(2)]),
    ],
)
def test_it_can_be_spared_where_the_others_have_room_for_what_it_serves(
    own: MemberLoad, others: list[MemberLoad]
) -> None:
    assert cannot_spare(own, others) is None


@pytest.mark.parametrize(
    ("own", "others", "reason"),
    [
        (load(0), [], LAST_MEMBER),
        (load(3), [load(2)], OTHERS_FULL),
        (load(1), [load(6)], OTHERS_FULL),
        (load(None), [load(0)], OTHERS_UNKNOWN),
        (load(0), [load(None)], OTHERS_UNKNOWN),
        (load(1), [load(0, None)], OTHERS_UNKNOWN),
    ],
)
def test_what_is_too_little_or_not_known_is_refused_and_the_way_out_is_named(
    own: MemberLoad, others: list[MemberLoad], reason: str
) -> None:
    found = cannot_spare(own, others)

    assert found is not None
    assert found[0] == reason
    assert "outage" in found[1]
