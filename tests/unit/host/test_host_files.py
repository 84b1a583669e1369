"""What may happen to a file between reading, writing and the way back: each is met, and nobody's edit is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl_host import Failure, part, system

OLD = b"# ours\nA=1\nB=1\nC=1\n"
NEW = b"# ours\nA=1\nB=2\nC=1\n"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount, and set the immutable flag")


def refused(act: Callable[[], Any]) -> Failure:
    with pytest.raises(Failure) as caught:
        act()
    return caught.value


def changed(host: Any, path: Path | None = None) -> Path:
    """A change that was written and is not judged yet."""
    path = path or host.file("a.conf", OLD)
    host.call("capture", files=[str(path)])
    host.write(path, OLD, NEW)
    return path


def fill(folder: Path) -> None:
    """Leave no room at all on a small file system."""
    with (folder / "filling").open("wb", buffering=0) as out:
        for size in (4096, 1):
            try:
                while out.write(b"x" * size):
                    pass
            except OSError:
                continue


@pytest.fixture
def small_disk(place: Path) -> Iterator[Path]:
    folder = place / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def immutable(path: Path, *, on: bool) -> None:
    subprocess.run(["chattr", "+i" if on else "-i", str(path)], check=True)


# -- changed by somebody else -------------------------------------------------------------------------------------
def test_where_somebody_else_changed_other_lines_only_our_part_goes_back(host: Any) -> None:
    path = changed(host)
    path.write_bytes(b"# theirs\n" + NEW + b"D=4\n")
    path.chmod(0o640)
    assert host.call("restore")["files"] == {str(path): "part_restored"}
    assert path.read_bytes() == b"# theirs\n" + OLD + b"D=4\n"
    assert path.stat().st_mode & 0o777 == 0o640
    compared = host.call("verify")["files"][str(path)]
    assert (compared["equal"], compared["part"], "bytes" in compared["differs"]) == (False, "back", True)


def test_an_edit_of_theirs_outlives_every_further_way_back(host: Any) -> None:
    path = changed(host)
    path.write_bytes(NEW + b"D=4\n")
    host.call("restore")
    answer = host.call("restore")
    assert (answer["files"], answer["changed"]) == ({str(path): "part_already"}, False)
    path.write_bytes(path.read_bytes() + b"E=5\n")
    assert host.call("restore")["files"] == {str(path): "part_already"}
    assert path.read_bytes() == OLD + b"D=4\nE=5\n"


def test_our_part_goes_back_also_when_the_staged_bytes_are_gone(host: Any) -> None:
    path = changed(host)
    host.call("cleanup")
    path.write_bytes(NEW + b"D=4\n")
    assert host.call("restore")["files"] == {str(path): "part_restored"}
    assert path.read_bytes() == OLD + b"D=4\n"


@pytest.mark.parametrize("theirs", [b"# ours\nA=1\nB=3\nC=1\n", b"# ours\nA=1\nC=1\n", NEW + b"B=2\n", b""])
def test_where_somebody_else_changed_our_very_part_nothing_is_written_and_the_way_by_hand_is_named(
    host: Any, theirs: bytes
) -> None:
    path = changed(host)
    path.write_bytes(theirs)
    failure = refused(lambda: host.call("restore"))
    assert failure.reason == "changed_by_other"
    assert "somebody else changed the very lines that this run wrote" in failure.message
    saved = failure.message.split("the file as it was saved is ")[1].split(":")[0]
    assert Path(saved).read_bytes() == OLD
    assert path.read_bytes() == theirs


def test_a_file_that_somebody_removed_is_not_made_anew(host: Any) -> None:
    path = changed(host)
    path.unlink()
    failure = refused(lambda: host.call("restore"))
    assert (failure.reason, "somebody else removed it" in failure.message) == ("changed_by_other", True)
    assert not path.exists()


def test_a_file_that_was_changed_between_reading_and_writing_is_not_written(host: Any) -> None:
    path = host.file("a.conf", OLD)
    host.call("capture", files=[str(path)])
    path.write_bytes(b"theirs")
    assert refused(lambda: host.write(path, OLD, NEW)).reason == "changed_by_other"
    assert path.read_bytes() == b"theirs"


def test_the_dead_man_too_takes_only_our_part_back(host: Any) -> None:
    path = host.file("a.conf", OLD)
    host.call("capture", files=[str(path)])
    host.arm(path)
    host.write(path, OLD, NEW)
    path.write_bytes(NEW + b"D=4\n")
    host.lease(0.2)
    fired = host.fired()
    assert (fired["outcome"], fired["files"]) == ("restored", {str(path): "part_restored"})
    assert path.read_bytes() == OLD + b"D=4\n"


LINES = st.lists(st.sampled_from([b"A=1\n", b"B=1\n", b"\n", b"C=1\r\n", b"x"]), max_size=6).map(b"".join)


@given(old=LINES, new=LINES, before=LINES, after=LINES)
def test_whatever_was_changed_and_whatever_was_added_around_it_theirs_is_never_lost(
    old: bytes, new: bytes, before: bytes, after: bytes
) -> None:
    assert part.standing(old, new, new) in (part.IN_FORCE, part.LOST)
    if old != new and part.standing(old, new, new) == part.IN_FORCE:
        assert part.put_back(old, new, new) == old
    present = before + new + after
    if part.standing(old, new, present) == part.IN_FORCE:
        mended, (was, ours) = part.put_back(old, new, present), part.changed(old, new)
        assert len(mended) == len(present) - len(b"".join(ours)) + len(b"".join(was))
        if part.standing(new, old, mended) == part.IN_FORCE:
            assert part.put_back(new, old, mended) == present


# -- what the file system does ------------------------------------------------------------------------------------
@ROOT
def test_a_full_disk_stops_the_writing_and_not_the_way_back(newcomer: Any, small_disk: Path) -> None:
    host = newcomer
    host.lease()
    path = small_disk / "a.conf"
    path.write_bytes(OLD)
    changed(host, path)
    fill(small_disk)
    before = path.stat().st_ino
    assert refused(lambda: host.write(path, NEW, NEW + b"x" * 5000)).reason == "disk_full"
    assert path.read_bytes() == NEW
    assert host.call("restore")["files"] == {str(path): "restored"}
    assert (path.read_bytes(), path.stat().st_ino) == (OLD, before)
    assert {entry.name for entry in small_disk.iterdir()} == {"a.conf", "filling"}


@ROOT
def test_a_saved_file_that_has_no_room_any_more_is_named_and_what_stands_there_is_whole(
    host: Any, small_disk: Path
) -> None:
    path, long = small_disk / "a.conf", OLD * 2000
    path.write_bytes(long)
    host.call("capture", files=[str(path)])
    host.write(path, long, NEW)
    fill(small_disk)
    failure = refused(lambda: host.call("restore"))
    assert (failure.reason, str(path) in failure.message) == ("disk_full", True)
    assert path.read_bytes() == NEW
    (small_disk / "filling").unlink()
    assert host.call("restore")["files"] == {str(path): "restored"}
    assert path.read_bytes() == long


@ROOT
def test_a_state_folder_without_room_gives_up_what_it_kept_for_the_way_back(newcomer: Any, small_disk: Path) -> None:
    host = newcomer
    host.state = small_disk / "state"
    host.lease()
    path = host.file("a.conf", OLD)
    host.call("capture", files=[str(path)])
    host.arm(path)
    host.write(path, OLD, NEW)
    fill(small_disk)
    assert host.call("bring_back", only=[str(path)])["files"] == {str(path): "restored"}
    assert path.read_bytes() == OLD
    assert host.disarm("reverted")["left_behind"] == []


@ROOT
def test_a_change_for_which_no_room_can_be_kept_is_refused_and_says_that_nothing_was_done(
    newcomer: Any, small_disk: Path
) -> None:
    host = newcomer
    host.state = small_disk / "state"
    host.lease()
    path = host.file("a.conf", OLD)
    host.call("capture", files=[str(path)])
    writes = [{"path": str(path), "expect": system.sha256(OLD), "staged": host.stage(NEW)}]
    fill(small_disk)
    failure = refused(lambda: host.call("change", writes=writes, arm={"nonce": host.nonce, "only": [str(path)]}))
    assert (failure.reason, failure.details["armed"]) == ("disk_full", False)
    assert path.read_bytes() == OLD
    assert host.standing()["armed"] is None


@ROOT
def test_a_read_only_file_system_is_named_and_the_dead_man_waits_until_it_is_mended(
    host: Any, small_disk: Path
) -> None:
    path = small_disk / "a.conf"
    path.write_bytes(OLD)
    host.call("capture", files=[str(path)])
    host.arm(path)
    host.write(path, OLD, NEW)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert refused(lambda: host.write(path, NEW, OLD)).reason == "read_only"
    assert refused(lambda: host.call("restore")).reason == "read_only"
    host.lease(0.2)
    host.wait(lambda: (host.standing()["fired"] or {}).get("reason") == "read_only")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert host.fired()["outcome"] == "restored"
    assert path.read_bytes() == OLD


@ROOT
def test_a_file_that_was_made_immutable_meanwhile_is_named_and_comes_back_once_it_may(host: Any) -> None:
    path = changed(host)
    immutable(path, on=True)
    try:
        for act in (lambda: host.write(path, NEW, OLD), lambda: host.call("restore")):
            failure = refused(act)
            assert (failure.reason, "chattr" in failure.message) == ("immutable", True)
    finally:
        immutable(path, on=False)
    assert path.read_bytes() == NEW
    assert host.call("restore")["files"] == {str(path): "restored"}


def test_a_file_in_whose_place_a_folder_lies_is_left_alone(host: Any) -> None:
    path = changed(host)
    path.unlink()
    path.mkdir()
    (path / "theirs").write_bytes(b"x")
    failure = refused(lambda: host.call("restore"))
    assert (failure.reason, "is a folder" in failure.message) == ("not_regular", True)
    assert (path / "theirs").read_bytes() == b"x"
    assert host.call("verify")["files"][str(path)]["differs"] == ["not_regular"]


def test_a_link_that_leads_nowhere_by_now_is_named(host: Any) -> None:
    target, path = host.file("real.conf", OLD), host.etc / "a.conf"
    path.symlink_to(target)
    changed(host, path)
    path.unlink()
    path.symlink_to(host.etc / "nowhere")
    failure = refused(lambda: host.call("restore"))
    assert (failure.reason, "nowhere" in failure.message) == ("dangling_link", True)
    assert (path.is_symlink(), target.read_bytes()) == (True, NEW)


def test_all_names_of_a_file_see_the_change_and_the_way_back(host: Any) -> None:
    path, other = host.file("a.conf", OLD), host.etc / "other-name"
    os.link(path, other)
    changed(host, path)
    assert other.read_bytes() == NEW
    host.call("restore")
    assert (path.read_bytes(), other.read_bytes(), path.stat().st_ino) == (OLD, OLD, other.stat().st_ino)


@ROOT
def test_a_file_that_is_mounted_alone_is_written_through_the_mount_both_ways(host: Any) -> None:
    path, source = host.file("a.conf", b""), host.file("source.conf", OLD)
    subprocess.run(["mount", "--bind", str(source), str(path)], check=True)
    try:
        inode = path.stat().st_ino
        changed(host, path)
        assert source.read_bytes() == NEW
        host.call("restore")
        assert (path.read_bytes(), source.read_bytes(), path.stat().st_ino) == (OLD, OLD, inode)
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_job_that_writes_its_own_version_after_the_way_back_is_seen_by_the_next_look(host: Any) -> None:
    path = changed(host)
    host.call("restore")
    assert host.call("verify")["equal"]
    path.write_bytes(NEW)
    compared = host.call("verify")["files"][str(path)]
    assert (compared["equal"], compared["differs"], "part" in compared) == (False, ["bytes"], False)


def test_the_digest_in_the_record_of_a_part_is_that_of_what_was_written(host: Any) -> None:
    path = changed(host)
    path.write_bytes(NEW + b"D=4\n")
    host.call("restore")
    intent, outcome = host.events()[-2:]
    assert (intent["event"], outcome["event"]) == ("part.intent", "part.outcome")
    assert intent["sha256"] == system.sha256(path.read_bytes())
