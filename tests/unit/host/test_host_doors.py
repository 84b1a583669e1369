"""The doors: streamed into memory, and through Ansible."""

from __future__ import annotations

import ast
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

import changectl_host
from changectl_host import bootstrap, procfs, program_zip, system

ROOT = Path(__file__).parents[3]


class Door:
    """The program as a controller starts it."""

    def __init__(self, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", bootstrap.BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options,
        )  # fmt: skip
        archive = program_zip()
        assert self.process.stdin is not None
        self.process.stdin.write(b"changectl %d\n" % len(archive) + archive)

    def send(self, number: Any, call: str, **args: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "call": call, "args": args}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def close(self) -> int:
        self.process.communicate(timeout=20)
        return self.process.returncode


def test_the_streamed_program_answers_and_leaves_nothing_on_disk(place: Path) -> None:
    door = Door(cwd=place, env={"HOME": str(place), "TMPDIR": str(place), "PATH": os.environ["PATH"]})
    door.send(1, "hello")
    answer = door.read()
    assert answer["ok"]["uid"] == os.geteuid()
    door.send(2, "host", paths=["/"])
    assert door.read()["ok"]["memory"]["total"] > 0
    assert door.close() == 0
    assert list(place.iterdir()) == []


def test_refusals_and_nonsense_are_answered_with_a_reason(place: Path) -> None:
    door = Door()
    door.send(1, "no_such_call")
    assert door.read()["error"]["reason"] == "unknown_call"
    door.send(2, "verify", run="R-1", state_dir=str(place))
    assert door.read() == {
        "id": 2,
        "error": {"reason": "not_captured", "message": "run R-1 has no complete snapshot on this host"},
    }
    assert door.process.stdin is not None
    door.process.stdin.write(b"not json\n")
    door.process.stdin.flush()
    assert door.read()["error"]["reason"] == "bad_request"
    door.close()


def generator(source: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("__main__.py", source)
    return buffer.getvalue()


def test_a_measurement_reports_progress_and_brings_its_records(host: Any) -> None:
    import base64
    import zlib

    source = (
        "import json, os, sys\njob = json.load(sys.stdin)\n"
        "print(json.dumps({'progress': {'done': 1}}), file=sys.stderr, flush=True)\n"
        "print(json.dumps({'n': job['n'], 'mark': os.environ['CHANGECTL_RUN']}))\n"
        "print('not JSON', file=sys.stderr)\n"
        "print(json.dumps({'summary': {'wall_start': 12.5}}), file=sys.stderr)\n"
    )
    seen: list[Any] = []
    args = {"run": "R-1", "state_dir": str(host.state), "job": {"n": 7, "token": "s3cret"},
            "generator": base64.b64encode(generator(source)).decode()}  # fmt: skip
    answer = changectl_host.dispatch("measure", args, seen.append)
    lines = zlib.decompress(base64.b64decode(answer["records"])).splitlines()
    assert [json.loads(line) for line in lines] == [{"n": 7, "mark": "R-1"}]
    assert (answer["count"], answer["summary"]) == (1, {"wall_start": 12.5})
    assert seen == [{"done": 1}]
    assert all(b"s3cret" not in path.read_bytes() for path in host.state.rglob("*") if path.is_file())
    assert not host.state.exists()


@pytest.mark.parametrize("source", ["import sys; sys.exit('out of luck')", "pass", "print('{')",
                                    "import os; print('{}', flush=True); os.kill(os.getpid(), 9)"])  # fmt: skip
def test_a_generator_that_fails_or_answers_nothing_is_no_measurement(host: Any, source: str) -> None:
    import base64

    with pytest.raises(changectl_host.Failure) as caught:
        host.call("measure", generator=base64.b64encode(generator(source)).decode())
    assert caught.value.reason == "generator_failed"


@pytest.mark.parametrize("end", ["close", "kill"])
def test_when_the_controller_goes_the_load_ends(host: Any, end: str) -> None:
    import base64

    pid_file = host.folder / "pid"
    source = f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    door = Door()
    door.send(
        1, "measure", run="R-1", state_dir=str(host.state), generator=base64.b64encode(generator(source)).decode()
    )
    deadline = time.monotonic() + 10
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    pid = int(pid_file.read_text())
    if end == "kill":
        door.process.send_signal(signal.SIGKILL)
    door.close()
    deadline = time.monotonic() + 5
    while procfs.stat(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert procfs.stat(pid) is None


def test_the_program_is_the_same_bytes_wherever_it_is_built(host: Any) -> None:
    archive = program_zip()
    assert archive == program_zip()
    names = set(zipfile.ZipFile(io.BytesIO(archive)).namelist())
    folder = Path(changectl_host.__file__).parent
    assert names == {f"changectl_host/{path.name}" for path in folder.glob("*.py")} | {"__main__.py"}
    door = Door()
    door.send(1, "capture", run="R-1", generation=1, state_dir=str(host.state), files=[])
    assert door.read()["ok"]["restorable"]
    door.close()
    assert system.sha256((host.run_folder / "program.pyz").read_bytes()) == system.sha256(archive)


def test_the_source_is_python_3_8() -> None:
    for path in Path(changectl_host.__file__).parent.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 8))
    ast.parse(bootstrap.BOOTSTRAP, feature_version=(3, 4))


def test_a_python_that_is_too_old_is_told_in_one_line() -> None:
    source = bootstrap.BOOTSTRAP.replace("import json, sys\n", "import json, sys\nsys.version_info = (3, 7, 1)\n", 1)
    answer = subprocess.run([sys.executable, "-c", source], input=b"", capture_output=True, check=False)
    error = json.loads(answer.stdout)["error"]
    assert error["reason"] == "python_too_old"
    assert "3.7" in error["message"]
    assert answer.returncode == 3


def test_a_program_that_did_not_arrive_whole_is_said_so() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", bootstrap.BOOTSTRAP], input=b"changectl 100\nPK", capture_output=True, check=False
    )
    assert json.loads(answer.stdout)["error"]["reason"] == "damaged_program"


def play(name: str, variables: dict[str, Any], folder: Path, *words: str) -> tuple[int, str]:
    """Run a play of ours against this machine; returns the status and what it printed."""
    file = folder / "variables.json"
    file.write_text(json.dumps({"changectl_host_name": "localhost", **variables}))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "CHANGECTL_HOST_DIR": os.environ["CHANGECTL_HOST_DIR"],
    }
    answer = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-v", "-i", "localhost,", "-c", "local",
         "-e", f"ansible_python_interpreter={sys.executable}", "-e", f"@{file}", *words,
         ROOT / "playbooks" / f"{name}.yml"],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    return answer.returncode, answer.stdout + answer.stderr


def test_a_change_goes_through_ansible_and_back_and_a_second_time_changes_nothing(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    new = host.stage(b"2")
    common = {"changectl_run": "R-1", "changectl_generation": 1, "changectl_state_dir": str(host.state)}
    writes = {"changectl_writes": [{"path": str(path), "expect": system.sha256(b"1"), "staged": new}]}
    code, answer = play("apply", {**common, **writes}, host.folder, "--check")
    assert (code, path.read_bytes()) == (0, b"1")
    host.lease()
    writes["changectl_arm"] = {"nonce": host.nonce, "only": [str(path)], "head": {"sequence": 7, "hash": "ab"}}
    code, answer = play("apply", {**common, **writes}, host.folder)
    assert code == 0, answer
    assert path.read_bytes() == b"2"
    assert '"method": "exchange"' in answer
    assert '"armed": true' in answer
    assert host.standing()["keeper_running"] is True
    assert host.call("witness")["heads"][0]["sequence"] == 7
    code, answer = play("apply", {**common, **writes}, host.folder)
    assert "changed=0 " in answer
    code, answer = play("restore", common, host.folder)
    assert (code, path.read_bytes()) == (0, b"1")
    assert host.disarm("reverted")["left_behind"] == []
    code, answer = play("apply", {**common, **writes, "changectl_generation": 0}, host.folder)
    assert code == 2
    assert "stale_generation" in answer


def test_a_change_that_comes_late_is_refused_by_the_program_itself_after_the_dead_man_acted(host: Any) -> None:
    path = host.edited()
    writes = [{"path": str(path), "expect": system.sha256(b"old"), "staged": host.stage(b"new")}]
    common = {"run": "R-1", "generation": 1, "state_dir": str(host.state)}
    arm = {"nonce": host.nonce, "only": [str(path)]}
    door = Door()
    door.send(1, "change", **common, writes=writes, arm=arm)
    assert door.read()["ok"]["changed"]
    host.lease(0.2)
    assert host.fired()["outcome"] == "restored"
    for number, call in enumerate(("change", "bring_back", "service"), 2):
        door.send(number, call, **common, writes=writes, arm=arm)
        assert door.read()["error"]["reason"] == "stale_generation"
    door.close()
    code, answer = play("apply", {"changectl_run": "R-1", "changectl_generation": 1, "changectl_writes": writes,
                                  "changectl_state_dir": str(host.state)}, host.folder)  # fmt: skip
    assert (code, "stale_generation" in answer) == (2, True)
    assert path.read_bytes() == b"old"
    assert host.standing()["fired"]["tries"] == 1


def test_a_change_whose_service_is_not_described_is_refused_before_anything_is_written(host: Any) -> None:
    path = host.file("a.conf", b"1")
    host.call("capture", files=[str(path)])
    writes = [{"path": str(path), "expect": system.sha256(b"1"), "staged": host.stage(b"2")}]
    for service, manager in [({"action": "restart"}, None), ("restart", {"command": {}})]:
        for call in ("change", "bring_back"):
            with pytest.raises(changectl_host.Failure, match=r"manager is missing|must be an object"):
                host.call(call, writes=writes, service=service, manager=manager)
    assert path.read_bytes() == b"1"
    assert host.call("change", writes=writes)["changed"]
    assert host.call("bring_back")["files"] == {str(path): "restored"}
    assert host.call("bring_back")["changed"] is False


@pytest.mark.parametrize("name", ["apply", "restore", "service"])
def test_a_play_with_missing_input_says_what_it_needs(name: str, place: Path) -> None:
    code, answer = play(name, {"changectl_run": "", "changectl_generation": 1}, place)
    assert code == 2
    assert f"{name}.yml needs changectl_run" in answer
