"""A lock that cannot be given back says nothing about what was done under it; a later run takes it over."""

from __future__ import annotations

from typing import cast

import pytest

from changectl.core.errors import ChangectlError
from changectl.store.locks import Locks, ServiceLock


class FullDisk:
    """Locks of a database that takes no more."""

    def acquire(self, service: str, run: str, owner: str) -> None:
        """Nobody has it."""

    def release(self, service: str, run: str) -> None:
        raise ChangectlError("the disk is full", reason="record_failed")


def lock() -> ServiceLock:
    return ServiceLock(cast(Locks, FullDisk()), "chat", "R1", "kim")


def test_what_was_done_stays_done() -> None:
    done = []
    with lock():
        done.append("kept")
    assert done == ["kept"]


def test_what_went_wrong_inside_is_what_is_told_with_the_lock_as_a_remark() -> None:
    with pytest.raises(ValueError, match="the real trouble") as told, lock():
        raise ValueError("the real trouble")
    assert told.value.__notes__ == ["the lock of chat could not be given back: the disk is full"]
