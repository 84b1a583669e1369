"""Writing: always compare-and-swap, always the old file or the new one, and never somebody else's lost."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, swap, system
from changectl_host.state import Run

# user::rw-, user:1:r--, group::r--, mask::r--, other::---
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, perm, who)
    for tag, perm, who in ((1, 6, 2**32 - 1), (2, 4, 1), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 0, 2**32 - 1))
)

NOBODY = 65534


def facts_of(path: Path) -> tuple[Any, ...]:
    status = path.stat()
    xattrs = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return status.st_mode, status.st_uid, status.st_gid, xattrs


def test_a_written_file_keeps_owner_mode_xattrs_and_acl(host: Any) -> None:
    path = host.file("a.conf", b"A=1\n")
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    path.chmod(0o640)
    os.setxattr(path, "user.note", b"\0\xff raw")
    os.setxattr(path, "system.posix_acl_access", ACL)
    before = facts_of(path)
    host.call("capture", files=[str(path)])
    answer = host.write(path, b"A=1\n", b"A=2\n")
    assert answer["changed"]
    assert answer["method"] == "exchange"
    assert path.read_bytes() == b"A=2\n"
    assert facts_of(path) == before
    assert host.names() == {"a.conf"}


def test_writing_twice_changes_nothing_the_second_time(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    host.write(path, b"1", b"2")
    inode = path.stat().st_ino
    assert host.write(path, b"1", b"2") == {"changed": False, "sha256": system.sha256(b"2"), "method": "none"}
    assert path.stat().st_ino == inode


def test_a_link_stays_and_its_target_is_written(host: Any) -> None:
    target = host.file("real.conf", b"1")
    link = host.etc / "link.conf"
    link.symlink_to("real.conf")
    host.call("capture", files=[str(link)])
    host.write(link, b"1", b"2")
    assert link.is_symlink()
    assert target.read_bytes() == b"2"


def test_a_hard_link_is_written_in_place_and_both_names_see_it(host: Any) -> None:
    path = host.file("a.conf", b"old and long")
    os.link(path, host.etc / "b.conf")
    host.call("capture", files=[str(path)])
    assert host.write(path, b"old and long", b"new")["method"] == "in_place"
    assert (host.etc / "b.conf").read_bytes() == b"new"
    assert host.call("restore")["files"] == {str(path): "restored"}
    assert (host.etc / "b.conf").read_bytes() == b"old and long"


@pytest.mark.parametrize("kind", ["dangling", "folder", "pipe", "relative"])
def test_what_is_no_file_is_refused(host: Any, kind: str) -> None:
    path = host.etc / "thing"
    if kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    name = "thing" if kind == "relative" else str(path)
    with pytest.raises(Failure) as caught:
        host.call("capture", files=[name])
    assert caught.value.reason == {"dangling": "dangling_link", "relative": "not_absolute"}.get(kind, "not_regular")


def test_a_file_that_somebody_changed_is_not_written(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    path.write_bytes(b"theirs")
    with pytest.raises(Failure) as caught:
        host.write(path, b"1", b"2")
    assert caught.value.reason == "changed_by_other"
    assert path.read_bytes() == b"theirs"
    assert host.names() == {"a.conf"}


def test_a_change_between_reading_and_exchanging_is_swapped_back(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])

    def accept(data: bytes) -> bool:
        # The editor's save lands right after our look at the file.
        subprocess.run(
            [
                sys.executable,
                "-c",
                f"import os;open({str(path) + '~'!r},'w').write('theirs');os.rename({str(path) + '~'!r},{str(path)!r})",
            ],
            check=True,
        )
        return data == b"1"

    with pytest.raises(Failure) as caught:
        swap.replace(Run("R-1", str(host.state)), "write", str(path), accept, b"2", None)
    assert caught.value.reason == "changed_by_other"
    assert path.read_bytes() == b"theirs"
    assert host.names() == {"a.conf"}


def test_against_a_busy_writer_no_edit_of_theirs_is_lost(host: Any) -> None:
    path = host.file("a.conf", b"0")
    host.call("capture", files=[str(path)])
    stop = threading.Event()
    saved: list[bytes] = []

    def editor() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            other = host.folder / "theirs"
            other.write_bytes(b"theirs %d" % number)
            other.rename(path)
            saved.append(b"theirs %d" % number)

    thread = threading.Thread(target=editor)
    thread.start()
    run = Run("R-1", str(host.state))
    refused = []
    for _ in range(60):
        try:
            swap.replace(run, "write", str(path), lambda data: data != b"ours", b"ours", None)
        except Failure as failure:
            refused.append(failure.reason)
    stop.set()
    thread.join()
    assert set(refused) == {"changed_by_other"}
    assert path.read_bytes() in (saved[-1], b"ours")
    assert host.names() == {"a.conf"}


def test_a_file_is_created_and_removed_only_when_it_is_ours(host: Any) -> None:
    path = host.etc / "new.conf"
    host.call("capture", files=[str(path)])
    assert host.write(path, None, b"new")["changed"]
    path.write_bytes(b"theirs")
    with pytest.raises(Failure) as caught:
        host.write(path, b"new", None)
    assert caught.value.reason == "changed_by_other"
    path.write_bytes(b"new")
    assert host.write(path, b"new", None)["method"] == "remove"
    assert host.names() == set()


def test_a_file_that_appeared_meanwhile_is_not_overwritten(host: Any) -> None:
    path = host.etc / "new.conf"
    host.call("capture", files=[str(path)])
    path.write_bytes(b"theirs")
    with pytest.raises(Failure) as caught:
        host.write(path, None, b"new")
    assert caught.value.reason == "changed_by_other"
    assert path.read_bytes() == b"theirs"


def test_a_file_without_snapshot_is_never_written(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[])
    with pytest.raises(Failure) as caught:
        host.write(path, b"1", b"2")
    assert caught.value.reason == "not_captured"


def test_of_several_files_none_is_written_when_one_is_not_as_expected(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"1")
    host.call("capture", files=[str(first), str(second)])
    second.write_bytes(b"theirs")
    new = host.stage(b"2")
    writes = [{"path": str(path), "expect": system.sha256(b"1"), "staged": new} for path in (first, second)]
    with pytest.raises(Failure) as caught:
        host.call("write_all", writes=writes)
    assert caught.value.reason == "changed_by_other"
    assert first.read_bytes() == b"1"


def test_the_intent_is_on_disk_before_the_act_and_the_outcome_after(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    host.write(path, b"1", b"2")
    kinds = [event["event"] for event in host.events()]
    assert kinds == ["capture.intent", "capture.outcome", "write.intent", "write.outcome"]
    assert (host.run_folder / "events.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set the immutable flag")
def test_an_immutable_file_is_refused_and_said_so(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    if subprocess.run(["chattr", "+i", str(path)], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no immutable flag")
    try:
        with pytest.raises(Failure) as caught:
            host.write(path, b"1", b"2")
        assert caught.value.reason == "immutable"
        host.become(run="R-2")
        assert host.call("capture", files=[str(path)])["problems"][0]["reason"] == "immutable"
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)
    assert path.read_bytes() == b"1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_full_disk_read_only_and_mounted_file_change_nothing(host: Any) -> None:
    disk = host.folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        path = disk / "sub" / "a.conf"
        path.parent.mkdir()
        path.write_bytes(b"1")
        linked = disk / "sub" / "linked"
        linked.write_bytes(b"1")
        os.link(linked, disk / "sub" / "linked2")
        assert host.call("capture", files=[str(path), str(linked)])["restorable"]
        for victim in (path, linked):
            with pytest.raises(Failure) as caught:
                host.write(victim, b"1", b"x" * 100_000)
            assert caught.value.reason == "disk_full"
            assert victim.read_bytes() == b"1"
        assert {entry.name for entry in path.parent.iterdir()} == {"a.conf", "linked", "linked2"}
        assert host.write(path, b"1", b"2")["changed"]
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(Failure) as caught:
            host.write(path, b"2", b"3")
        assert caught.value.reason == "read_only"
        assert path.read_bytes() == b"2"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_mounted_single_file_keeps_its_inode(host: Any) -> None:
    path, source = host.file("a.conf", b""), host.file("source.conf", b"1")
    if subprocess.run(["mount", "--bind", str(source), str(path)], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        host.call("capture", files=[str(path)])
        assert host.write(path, b"1", b"22")["method"] == "in_place"
        assert source.read_bytes() == b"22"
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_without_exchange_the_rename_is_guarded(host: Any) -> None:
    path = host.file("a.conf", b"1")
    from changectl_host import facts

    place = host.folder / "prepared"
    place.write_bytes(b"2")
    with facts.opened(str(path)) as before:
        assert swap._guarded_rename(str(place), before) == "rename"
        place.write_bytes(b"3")
        with pytest.raises(Failure):
            swap._guarded_rename(str(place), before)
    assert path.read_bytes() == b"2"


def test_a_folder_that_we_may_not_write_is_refused(newcomer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host = newcomer
    monkeypatch.setenv("CHANGECTL_HOST_DIR", str(host.state))
    path = host.file("a.conf", b"A=1\n")
    if os.geteuid() == 0:
        host.folder.chmod(0o755)
        host.state.mkdir(mode=0o700)
        os.chown(host.state, NOBODY, NOBODY)

    def write_as_somebody_else() -> str:
        host.lease()
        host.call("capture", files=[str(path)])
        try:
            host.write(path, b"A=1\n", b"A=2\n")
        except Failure as failure:
            return failure.reason
        return "written"

    host.etc.chmod(0o555)
    try:
        reason = as_nobody(write_as_somebody_else)
    finally:
        host.etc.chmod(0o755)
    assert reason in ("not_permitted", "cannot_keep_metadata")
    assert path.read_bytes() == b"A=1\n"
    assert host.names() == {"a.conf"}


def as_nobody(act: Callable[[], str]) -> str:
    """What `act` says when a user without rights does it; root gives its rights up in a child process."""
    if os.geteuid() != 0:
        return act()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            said = act()
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent reads it
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as stream:
        return stream.read()


def test_system_errors_have_stable_words() -> None:
    from changectl_host.failure import from_os_error

    assert from_os_error(OSError(errno.ENOSPC, "x"), "writing").reason == "disk_full"
    assert from_os_error(OSError(errno.EROFS, "x"), "writing").reason == "read_only"
    assert from_os_error(OSError(errno.EXDEV, "x"), "writing").reason == "os_error"
