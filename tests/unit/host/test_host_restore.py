"""The way back: proven before, exact after, and never over somebody else's edit."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl_host import Failure, bootstrap, inplace, program_zip, system


def test_restore_gives_back_bytes_owner_mode_and_xattrs(host: Any) -> None:
    path = host.file("a.conf", b"one\r\ntwo")
    path.chmod(0o604)
    os.setxattr(path, "user.k", b"v")
    host.call("capture", files=[str(path)])
    host.write(path, b"one\r\ntwo", b"three")
    path.chmod(0o666)
    os.setxattr(path, "user.other", b"x")
    assert host.call("verify")["files"][str(path)] == {"equal": False, "differs": ["bytes", "mode", "xattrs"]}
    assert host.call("restore")["files"] == {str(path): "restored"}
    assert host.call("verify")["equal"]
    assert path.read_bytes() == b"one\r\ntwo"
    assert os.listxattr(path) == ["user.k"]
    assert host.call("restore") == {"files": {str(path): "already"}, "changed": False}


def test_a_file_that_was_not_there_is_gone_again(host: Any) -> None:
    path = host.etc / "new.conf"
    host.call("capture", files=[str(path)])
    host.write(path, None, b"new")
    assert host.call("restore")["files"] == {str(path): "removed"}
    assert not path.exists()


def test_a_file_that_we_removed_comes_back_whole(host: Any) -> None:
    path = host.file("a.conf", b"1")
    path.chmod(0o600)
    os.setxattr(path, "user.k", b"v")
    host.call("capture", files=[str(path)])
    host.write(path, b"1", None)
    host.call("restore")
    assert host.call("verify")["equal"]


def test_an_edit_of_somebody_else_is_kept_and_named_while_the_others_are_restored(host: Any) -> None:
    first, second = host.file("1.conf", b"1"), host.file("2.conf", b"1")
    host.call("capture", files=[str(first), str(second)])
    host.write(first, b"1", b"2")
    host.write(second, b"1", b"2")
    first.write_bytes(b"theirs")
    with pytest.raises(Failure) as caught:
        host.call("restore")
    assert caught.value.reason == "changed_by_other"
    assert caught.value.details["files"] == {str(first): "changed_by_other", str(second): "restored"}
    assert first.read_bytes() == b"theirs"
    assert second.read_bytes() == b"1"


def test_a_link_that_leads_elsewhere_now_is_not_followed(host: Any) -> None:
    host.file("v1", b"1")
    other = host.file("v2", b"1")
    link = host.etc / "current"
    link.symlink_to("v1")
    host.call("capture", files=[str(link)])
    link.unlink()
    link.symlink_to("v2")
    with pytest.raises(Failure) as caught:
        host.call("restore")
    assert caught.value.reason == "changed_by_other"
    assert host.call("verify")["files"][str(link)]["differs"] == ["link"]
    assert other.read_bytes() == b"1"


def test_damaged_saved_bytes_are_never_restored_nor_called_equal(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    host.write(path, b"1", b"2")
    (host.run_folder / "snapshot" / "files" / system.sha256(b"1")).write_bytes(b"rotten")
    for call in ("restore", "verify"):
        with pytest.raises(Failure) as caught:
            host.call(call)
        assert caught.value.reason == "damaged_state"
    assert path.read_bytes() == b"2"


def test_a_snapshot_is_never_overwritten_by_a_later_state(host: Any) -> None:
    path = host.file("a.conf", b"1")
    first = host.call("capture", files=[str(path)])
    assert host.call("capture", files=[str(path)])["digest"] == first["digest"]
    host.write(path, b"1", b"2")
    with pytest.raises(Failure) as caught:
        host.call("capture", files=[str(path)])
    assert caught.value.reason == "already_captured"
    host.become(run="R-1.2")
    assert host.call("capture", files=[str(path)])["restorable"]
    host.become(run="R-1", generation=2)
    host.call("restore")
    assert path.read_bytes() == b"1"


def test_saved_things_are_private_and_lie_outside_the_configuration(host: Any) -> None:
    path = host.file("a.conf", b"1")
    answer = host.call("capture", files=[str(path)])
    assert answer["files"][str(path)]["sha256"] == system.sha256(b"1")
    assert host.names() == {"a.conf"}
    for folder, _, names in os.walk(host.state):
        assert Path(folder).stat().st_mode & 0o077 == 0
        assert all((Path(folder) / name).stat().st_mode & 0o077 == 0 for name in names)


def test_an_older_generation_may_not_act_any_more(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.become(generation=2)
    host.call("capture", files=[str(path)])
    host.generation = 1
    for call in ("capture", "stage", "write", "restore", "service", "cleanup"):
        extra = {"files": [], "sha256": system.sha256(b""), "content": "", "action": "stop",
                 "manager": {"systemd": {"unit": "x.service"}}}  # fmt: skip
        with pytest.raises(Failure) as caught:
            host.call(call, **extra)
        assert caught.value.reason == "stale_generation"


def test_while_another_call_holds_the_host_nothing_is_changed(host: Any) -> None:
    from changectl_host.locks import host_lock

    with host_lock(str(host.state)), ThreadPoolExecutor() as other:
        caught = other.submit(host.call, "restore", lock_wait=0.1).exception()
    assert isinstance(caught, Failure)
    assert caught.reason == "host_busy"


def test_folders_of_a_newer_program_are_left_alone(host: Any) -> None:
    host.call("capture", files=[])
    (host.run_folder / "run.json").write_text(json.dumps({"format": 99, "generation": 1}))
    with pytest.raises(Failure) as caught:
        host.call("restore")
    assert caught.value.reason == "newer_format"


@pytest.mark.parametrize("name", ["../x", "", "a/b", "a/2/3", ".hidden", "a\nb", None, 7])
def test_what_is_no_run_id_never_becomes_a_path(host: Any, name: Any) -> None:
    host.run = name
    with pytest.raises(Failure) as caught:
        host.call("verify")
    assert caught.value.reason == "bad_arguments"


@given(old=st.binary(max_size=40), new=st.binary(max_size=40), cut=st.integers(0, 40))
def test_a_torn_in_place_write_is_recognised_wherever_it_was_cut(old: bytes, new: bytes, cut: int) -> None:
    cut = min(cut, len(new))
    assert inplace.is_torn(new[:cut] + old[cut:], old, new)


def test_a_torn_in_place_write_is_restored(host: Any) -> None:
    path = host.file("a.conf", b"old old old")
    os.link(path, host.etc / "b.conf")
    host.call("capture", files=[str(path)])
    host.write(path, b"old old old", b"new new new")
    lines = (host.run_folder / "events.jsonl").read_text().splitlines()
    (host.run_folder / "events.jsonl").write_text(
        "\n".join(lines[:-1]) + '\n{"event": "wri'
    )  # killed before the outcome
    path.write_bytes(b"new new old")
    assert host.call("restore")["files"] == {str(path): "restored"}
    assert path.read_bytes() == b"old old old"


def test_whenever_the_program_is_killed_the_file_is_the_old_one_or_the_new_one(host: Any) -> None:
    path = host.file("a.conf", b"1" * 5000)
    host.call("capture", files=[str(path)])
    contents = [b"1" * 5000, b"2" * 7000]
    digests = [host.stage(data) for data in contents]
    archive = program_zip()
    for attempt in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", bootstrap.BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"changectl %d\n" % len(archive) + archive)
        now = system.sha256(path.read_bytes())
        for number in range(40):
            there = digests[1 - digests.index(now)]
            args = {"run": "R-1", "generation": 1, "state_dir": str(host.state), "path": str(path),
                    "expect": now, "staged": there}  # fmt: skip
            process.stdin.write(json.dumps({"id": number, "call": "write", "args": args}).encode() + b"\n")
            now = there
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(0.003 * attempt)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert path.read_bytes() in contents
        assert host.names() <= {"a.conf"}
    host.call("cleanup")
    assert host.call("restore")["files"][str(path)] in ("restored", "already")
    assert host.call("verify")["equal"]
    assert not list(host.run_folder.glob("swap/*"))


def test_the_program_left_in_the_run_folder_restores_by_hand(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    host.write(path, b"1", b"2")
    program = host.run_folder / "program.pyz"

    def by_hand(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, program, *words], capture_output=True, text=True, check=False)

    assert by_hand("verify").returncode == 3
    answer = by_hand("restore")
    assert answer.returncode == 0
    assert f"{path}: restored" in answer.stdout
    assert path.read_bytes() == b"1"
    assert by_hand("verify").returncode == 0
    assert "restore.outcome" in by_hand("status").stdout
    assert "program: " in by_hand("hello").stdout
    path.write_bytes(b"theirs")
    refused = by_hand("restore")
    assert refused.returncode == 3
    assert "changed_by_other" in refused.stderr


def test_a_scratch_restore_that_cannot_succeed_is_a_problem_and_not_a_pass(host: Any) -> None:
    path = host.file("a.conf", b"1")
    os.setxattr(path, "user.k", b"v")
    from changectl_host import capture, facts
    from changectl_host.state import Run

    host.call("capture", files=[str(path)])
    with facts.opened(str(path)) as file:
        entry = {"exists": True, **facts.metadata(file), "sha256": system.sha256(b"other")}
    problems = capture.prove(Run("R-1", str(host.state)), {str(path): entry})
    assert problems[0]["reason"] == "damaged_state"


def test_cleanup_and_forget_leave_what_they_should(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    host.stage(b"2")
    host.call("cleanup")
    assert not (host.run_folder / "staged").exists()
    assert host.call("verify")["equal"]
    assert host.call("forget")["changed"]
    assert not host.run_folder.exists()
    assert not host.call("forget")["changed"]


def test_staged_bytes_must_be_what_their_name_says(host: Any) -> None:
    with pytest.raises(Failure) as caught:
        host.call("stage", sha256=system.sha256(b"1"), content=base64.b64encode(b"2").decode())
    assert caught.value.reason == "bad_arguments"
