"""Access control lists: who may read a file that its mode bits alone would refuse, and the other way round."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl_host import acl, dispatch, facts

OWNER, USER, GROUP_OWNER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
STRANGER = 4711
READ = 4


def packed(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def readable(entries: bytes, uid: int = STRANGER, groups: tuple[int, ...] = ()) -> bool:
    status = os.stat_result((0o640, 0, 0, 1, 1000, 100, 0, 0, 0, 0))
    return acl.by_list(acl.parse(entries), status, uid, groups, READ)


@pytest.mark.parametrize(
    ("entries", "uid", "groups", "answer"),
    [
        ([(USER, 4, STRANGER), (MASK, 4, 0), (OTHER, 0, 0)], STRANGER, (), True),
        ([(USER, 4, STRANGER), (MASK, 0, 0), (OTHER, 4, 0)], STRANGER, (), False),  # the mask bounds named users
        ([(USER, 0, STRANGER), (MASK, 7, 0), (OTHER, 4, 0)], STRANGER, (), False),  # named users are not others
        ([(GROUP, 4, 55), (MASK, 4, 0), (OTHER, 0, 0)], STRANGER, (55,), True),
        ([(GROUP_OWNER, 0, 0), (GROUP, 4, 55), (MASK, 7, 0)], STRANGER, (55, 100), True),  # any fitting group
        ([(GROUP_OWNER, 0, 0), (MASK, 7, 0), (OTHER, 4, 0)], STRANGER, (100,), False),
        ([(OTHER, 4, 0)], STRANGER, (), True),
        ([(OWNER, 0, 0), (OTHER, 4, 0)], 1000, (), False),
    ],
)
def test_the_kernels_order_is_followed(
    entries: list[tuple[int, int, int]], uid: int, groups: tuple[int, ...], answer: bool
) -> None:
    assert readable(packed(*entries), uid, groups) is answer


@given(st.binary(max_size=64))
def test_whatever_stands_there_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        acl.parse(data)


def test_a_list_of_another_version_is_not_understood() -> None:
    with pytest.raises(ValueError, match="not understood"):
        acl.parse(struct.pack("<I", 3))


@pytest.mark.skipif(shutil.which("setfacl") is None, reason="no setfacl on this machine")
def test_the_real_kernels_list_is_read(place: Path) -> None:
    model = place / "m.bin"
    model.write_bytes(b"x")
    model.chmod(0o600)
    place.chmod(0o755)
    assert facts.readable_by(str(model), STRANGER, []) is False
    subprocess.run(["setfacl", "-m", f"u:{STRANGER}:r", str(model)], check=True)
    assert facts.readable_by(str(model), STRANGER, []) is True
    answer = dispatch("model", {"path": str(model), "uid": STRANGER, "gids": []})
    assert answer["readable_by"] == {"uid": STRANGER, "all": True, "not": [], "unclear": [], "acl_considered": True}


def test_without_setfacl_a_list_can_be_written_by_hand(place: Path) -> None:
    model = place / "m.bin"
    model.write_bytes(b"x")
    place.chmod(0o755)
    nobody = 0xFFFFFFFF
    entries = packed(
        (OWNER, 6, nobody), (USER, 4, STRANGER), (GROUP_OWNER, 0, nobody), (MASK, 4, nobody), (OTHER, 0, nobody)
    )
    try:
        os.setxattr(model, "system.posix_acl_access", entries)
    except OSError:
        pytest.skip("this file system keeps no access control lists")
    assert facts.readable_by(str(model), STRANGER, []) is True
    assert facts.readable_by(str(model), STRANGER + 1, []) is False
