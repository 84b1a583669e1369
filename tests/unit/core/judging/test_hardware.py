"""Whether what one host has shown says anything about another: only where all that decides is known and alike."""

from __future__ import annotations

from typing import Any

import pytest

from changectl.core.judging.hardware import Hardware, hardware

HOST: dict[str, Any] = {
    "machine": "x86_64",
    "cpus": {"model": "EPYC", "count": 64, "usable": 64},
    "memory": {"total": 512_000_000_000},
    "gpu": {"present": True, "driver": "550.1", "models": ["H200", "H200"], "amd": False},
}


def other(name: str, value: Any, version: str | None = "1.2") -> Hardware:
    return hardware({**HOST, name: value}, version)


def test_hosts_of_one_kind_are_alike_although_their_firmware_keeps_more_or_less_memory() -> None:
    assert other("memory", {"total": 511_000_000_000}).unlike(hardware(HOST, "1.2")) == []


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("machine", "aarch64", "aarch64"),
        ("cpus", {"model": "EPYC", "count": 64, "usable": 32}, "32"),
        ("cpus", {"model": "Xeon", "count": 64, "usable": 64}, "Xeon"),
        ("memory", {"total": 256_000_000_000}, "512 GB -> 256 GB"),
        ("gpu", {**HOST["gpu"], "models": ["H200"]}, "gpu"),
        ("gpu", {**HOST["gpu"], "driver": "560"}, "driver 560"),
        ("gpu", {"present": False, "models": []}, "gpu"),
    ],
)
def test_every_difference_is_named_with_both_values(name: str, value: Any, word: str) -> None:
    (found,) = other(name, value).unlike(hardware(HOST, "1.2"))
    assert word in found


def test_another_version_of_the_engine_is_a_difference() -> None:
    assert len(hardware(HOST, "1.3").unlike(hardware(HOST, "1.2"))) == 1
    assert hardware(HOST, None).unlike(hardware(HOST, None)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("machine", None),
        ("cpus", None),
        ("cpus", {"model": None, "count": 4, "usable": 4}),
        ("cpus", {"model": "EPYC", "count": 64}),
        ("memory", {}),
        ("gpu", None),
        ("gpu", {"present": True, "models": [""]}),
        ("gpu", {**HOST["gpu"], "driver": None}),
    ],
)
def test_what_is_not_known_of_both_is_not_alike(name: str, value: Any) -> None:
    (found,) = other(name, value).unlike(other(name, value))
    assert "not known" in found
