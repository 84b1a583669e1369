from __future__ import annotations

import pytest

from changectl.core.declared.traffic_spec import TrafficSpec
from changectl.core.errors import InputError
from changectl.traffic import load, names


def by_command(**other: object) -> TrafficSpec:
    return TrafficSpec.model_validate(
        {"command": {"out": "/opt/lb out gpu1", "in": ["/opt/lb", "in", "gpu 1"], **other}}
    )


def test_without_traffic_control_nothing_is_switched_and_that_is_said() -> None:
    for spec in ("none", None):
        traffic = load(spec)
        assert not traffic.controls
        assert traffic.peers(b"anything") is None
        assert traffic.put_back(b"anything") == b"anything"
        assert "fail" in traffic.impact()


def test_an_unknown_way_names_the_known_ones() -> None:
    assert names() == ["command", "nginx", "none"]
    with pytest.raises(InputError, match="none"):
        load("no-such-way")


def test_commands_are_words_that_no_shell_reads() -> None:
    traffic = load(by_command())

    assert traffic.controls
    assert traffic.way() == {"command": {"out": ["/opt/lb", "out", "gpu1"], "in": ["/opt/lb", "in", "gpu 1"]}}


def test_who_else_serves_is_not_known_to_a_command() -> None:
    assert load(by_command()).peers(b"") is None


def test_the_same_commands_are_one_place_and_others_another() -> None:
    one = load(by_command())

    assert one.place == load(by_command(host="lb1")).place
    assert one.place != load(by_command(out="/opt/lb out gpu2")).place
    assert (one.host, load(by_command(host="lb1")).host) == (None, "lb1")
