from __future__ import annotations

import pytest

from changectl.core.errors import InputError
from changectl.traffic import load, names


def test_without_traffic_control_nothing_is_switched_and_that_is_said() -> None:
    for spec in ("none", None):
        traffic = load(spec)
        assert not traffic.controls
        assert traffic.steps_out({}) == traffic.steps_in({}) == []
        assert "fail" in traffic.impact()


def test_an_unknown_way_names_the_known_ones() -> None:
    assert "none" in names()
    with pytest.raises(InputError, match="none"):
        load({"nginx": {}})
