"""A run is taken over on a full disk: the room that was kept when it was armed is for whoever brings it back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.host.test_host_arming import fill, full_disk

__all__ = ["full_disk"]  # a small file system


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_whoever_takes_a_run_over_on_a_full_disk_gets_its_lease_and_brings_it_back(
    newcomer: Any, full_disk: Path
) -> None:
    host = newcomer
    host.state = full_disk / "state"
    host.lease()
    path = host.edited()
    host.arm(path)
    host.write(path, b"old", b"new")
    fill(full_disk, 0)

    host.generation, host.nonce = 2, "second"
    assert host.lease()["taken_over"]["run"] == "R-1"
    now = host.standing()
    assert (now["armed"]["nonce"], now["armed"]["generation"], now["keeper_running"]) == ("second", 2, True)
    assert host.call("bring_back", only=[str(path)])["files"] == {str(path): "restored"}
    assert path.read_bytes() == b"old"
    assert host.disarm("reverted")["left_behind"] == []
