"""What others see of a change and its way back: the files, whole, as they were, and nothing beside them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.host.test_host_way_back import Service, service
from tests.unit.host.watched_folder import WatchedFolder, scanned

from changectl_host import snapshot, system
from changectl_host.state import Run

SCAN = "*.conf*"
ROUNDS = 20
TICK = 0.02  # seconds: how finely the kernel tells when a process began
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")

__all__ = ["service"]  # a real process that reads two files


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the host's configuration."""
    folder = Path(tempfile.mkdtemp(prefix="changectl-test-", dir="/dev/shm"))
    if folder.stat().st_dev == Path("/var/tmp").stat().st_dev:
        pytest.skip("/dev/shm and /var/tmp are one file system here")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def there_and_back(host: Any, path: Path) -> list[str]:
    """Everything that appears beside a file while it is saved, written, restored and compared, several times."""
    watched = WatchedFolder(host.etc)
    host.call("capture", files=[str(path)])
    for _ in range(3):
        host.write(path, b"old", b"new")
        assert host.call("restore")["files"] == {str(path): "restored"}
        assert host.call("verify")["equal"]
    host.call("cleanup")
    return watched.appeared()


def test_a_service_that_scans_its_folder_never_sees_a_copy_of_its_configuration(host: Any) -> None:
    path = host.file("a.conf", b"old")
    assert set(there_and_back(host, path)) == {"a.conf"}  # not even a hidden one
    assert host.names() == {"a.conf"}


def test_nor_where_copies_have_to_lie_beside_the_file_for_a_moment(host: Any, elsewhere: Path) -> None:
    host.call("release", nonce=host.nonce)
    host.state = elsewhere / "state"
    host.lease()
    path = host.file("a.conf", b"old")
    appeared = there_and_back(host, path)

    assert len(set(appeared)) > 1
    assert scanned(appeared, SCAN) == {"a.conf"}
    assert not [name for name in appeared if name != "a.conf" and name.endswith(".conf")]
    assert host.names() == {"a.conf"}


@as_root
def test_a_restored_file_has_its_owner_again_whoever_owned_it_meanwhile(host: Any) -> None:
    path = host.file("a.conf", b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    os.setxattr(path, "user.note", b"\0raw")
    host.call("capture", files=[str(path)])
    host.write(path, b"old", b"new")
    os.chown(path, 0, 0)
    path.chmod(0o600)
    os.removexattr(path, "user.note")
    host.call("restore")

    status = path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 2345, 0o640)
    assert os.getxattr(path, "user.note") == b"\0raw"
    assert host.call("verify")["equal"]


@as_root
def test_the_saved_copy_is_nobody_elses_and_remembers_whose_the_file_was(host: Any) -> None:
    path = host.file("a.conf", b"old")
    os.chown(path, 1234, 2345)
    path.chmod(0o644)
    host.call("capture", files=[str(path)])

    copy = (host.run_folder / "snapshot" / "files" / system.sha256(b"old")).stat()
    assert (copy.st_uid, copy.st_mode & 0o7777) == (os.geteuid(), 0o600)
    entry = snapshot.manifest(Run(host.run, str(host.state)))["files"][str(path)]
    assert (entry["uid"], entry["gid"], entry["mode"]) == (1234, 2345, 0o644)


def test_two_files_of_one_change_both_come_back(host: Any) -> None:
    paths = [host.file("settings.env", b"old"), host.file("drop-in.conf", b"old")]
    host.call("capture", files=[str(path) for path in paths])
    old, new = system.sha256(b"old"), host.stage(b"new")
    host.call("change", writes=[{"path": str(path), "expect": old, "staged": new} for path in paths])
    assert [path.read_bytes() for path in paths] == [b"new", b"new"]
    answer = host.call("bring_back")

    assert answer["files"] == {str(path): "restored" for path in paths}
    assert [path.read_bytes() for path in paths] == [b"old", b"old"]
    assert host.call("verify")["equal"]


def test_what_runs_after_the_way_back_was_started_after_the_files_were_back(service: Service) -> None:
    service.change()
    changed = service.wait()
    service.back()
    running = service.wait()

    seen = service.host.call("inspect", manager=service.manager, files=[])["process"]
    assert seen["pid"] == running != changed
    assert seen["started_at"] > service.ours.stat().st_ctime - TICK


def test_a_decision_that_comes_at_once_after_arming_counts_every_time(host: Any) -> None:
    host.call("release", nonce=host.nonce)
    path = host.file("a.conf", b"old")
    for number in range(ROUNDS):
        host.run = host.nonce = f"R-{number}"
        host.lease()
        host.call("capture", files=[str(path)])
        host.arm(path)
        assert host.disarm("kept")["changed"]  # within milliseconds: whoever keeps watch has hardly begun to
        standing = host.standing()
        assert (standing["armed"], standing["disarmed"]["outcome"]) == (None, "kept")
        host.call("release", nonce=host.nonce)

    for number in range(ROUNDS):
        host.run = f"R-{number}"
        host.wait(lambda: host.keeper() is None)
        assert host.standing()["fired"] is None
