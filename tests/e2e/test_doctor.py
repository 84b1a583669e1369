"""`changectl doctor` on this machine, with the real host program and a real dead-man, in a world of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.e2e.doctor_world import HOLDER
from tests.faults import inside

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/reference/records.schema.json").read_text())
#: What a host's folder holds when nothing is left in it: locks, and the folder of all runs.
BARE = {"lock", "lease.lock", "runs"}


@dataclass(frozen=True)
class Told:
    """What came of a story."""

    looks: list[dict[str, Any]]
    left: dict[str, str]
    sleepers: list[str]

    def document(self, number: int = -1) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.looks[number]["out"])
        return document

    def checks(self, number: int = -1) -> dict[str, dict[str, Any]]:
        (host,) = self.document(number)["hosts"]
        return {check["name"]: check for check in host["checks"]}

    def proof(self) -> dict[str, Any]:
        proof: dict[str, Any] = self.document()["hosts"][0]["proof"]
        return proof

    @property
    def codes(self) -> list[int]:
        return [look["code"] for look in self.looks]


def told(story: str, folder: Path) -> Told:
    """Let a story happen in a world of its own."""
    if (why := inside.possible()) is not None:
        pytest.skip(f"no world of its own can be made: {why}")
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"here": variables}}}))
    order, result = folder / "order.json", folder / "result.json"
    order.write_text(json.dumps({"story": story, "folder": str(folder)}))
    command = [word.replace("tests.faults.inside", "tests.e2e.doctor_world") for word in inside.command(order, result)]
    paths = os.pathsep.join([str(ROOT / "playbooks/module_utils"), str(ROOT / "src")])
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=200, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Told(**json.loads(result.read_text()))


def test_a_sound_host_is_sound_and_nothing_of_it_stays(tmp_path: Path) -> None:
    seen = told("sound", tmp_path)

    assert seen.codes == [0], seen.looks
    which = {"$ref": "#/$defs/doctor", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}
    jsonschema.validate(seen.document(), which, cls=jsonschema.Draft202012Validator)
    checks, proof = seen.checks(), seen.proof()
    assert {name for name, check in checks.items() if check["state"] in ("failed", "unknown")} == set()
    assert (proof["state"], proof["keeper"], proof["reboot_safe"]) == ("proven", "process", False)
    assert 0 <= proof["late_seconds"] < 1
    assert 0 < proof["restore_seconds"] < 1
    # Without systemd, on a file system in memory: said, but no finding.
    assert checks["dead_man"]["state"] == checks["systemd"]["state"] == checks["state_folder"]["state"] == "advice"
    assert checks["same_python"]["figure"].startswith(sys.executable)
    assert set(seen.left) == BARE
    assert seen.sleepers == []


def test_the_folders_of_other_runs_stay_and_a_second_look_finds_the_same(tmp_path: Path) -> None:
    seen = told("twice", tmp_path)

    assert seen.codes == [0, 0]
    figures = [seen.checks(number)["leftovers"] for number in (0, 1)]
    assert figures[0] == figures[1]
    assert figures[0]["figure"].startswith("folders of runs, their way back: 1 (")
    assert {name for name in seen.left if name.startswith("runs/") and "doctor" in name} == set()
    assert f"runs/{HOLDER['run']}/snapshot/manifest.json" in seen.left


def test_a_host_at_work_is_left_in_peace_and_not_proven(tmp_path: Path) -> None:
    seen = told("held", tmp_path)

    assert seen.codes == [3]
    dead_man = seen.checks()["dead_man"]
    assert dead_man["state"] == "unknown"
    assert "not proven now" in dead_man["figure"]
    assert "kim@desk" in dead_man["figure"]
    assert seen.checks()["leftovers"]["state"] == "ok"
    assert json.loads(seen.left["lease.json"])["nonce"] == "theirs"
    assert "taken_away" not in seen.checks()


def test_a_full_disk_is_named_and_nothing_is_begun(tmp_path: Path) -> None:
    seen = told("full", tmp_path)

    assert seen.codes == [3]
    checks = seen.checks()
    assert "no space is left" in checks["state_folder"]["figure"]
    assert (checks["state_folder"]["state"], checks["room"]["state"]) == ("failed", "failed")
    assert checks["dead_man"]["state"] == "failed"
    assert "no space is left" in checks["dead_man"]["figure"]
    assert set(seen.left) <= {"others", "lock", "lease.lock"}


def test_a_state_folder_that_others_may_write_into_is_not_used(tmp_path: Path) -> None:
    seen = told("open_to_all", tmp_path)

    assert seen.codes == [3]
    assert "can be written by others" in seen.checks()["state_folder"]["figure"]
    assert seen.checks()["dead_man"]["state"] == "failed"
    assert not any(name.startswith("runs/") for name in seen.left)


def test_a_dead_man_that_is_dead_is_found_out_and_all_is_taken_away(tmp_path: Path) -> None:
    seen = told("blinded", tmp_path)

    assert seen.codes == [3]
    checks = seen.checks()
    assert checks["dead_man"]["state"] == "failed"
    assert "what keeps watch is gone" in checks["dead_man"]["figure"]
    assert checks["taken_away"]["state"] == "ok"
    assert set(seen.left) == BARE


def test_bytes_that_do_not_come_back_are_no_proof(tmp_path: Path) -> None:
    seen = told("rewritten", tmp_path)

    assert seen.codes == [3]
    assert seen.checks()["dead_man"]["state"] == "failed"
    assert set(seen.left) == BARE
    assert seen.sleepers == []


def test_whoever_interrupts_it_leaves_nothing_behind(tmp_path: Path) -> None:
    seen = told("interrupted", tmp_path)

    assert seen.codes == [130]
    assert json.loads(seen.looks[0]["out"])["error"]["reason"] == "interrupted"
    assert set(seen.left) == BARE
    assert seen.sleepers == []


def test_killed_in_the_middle_the_host_ends_it_alone_and_the_next_look_names_the_folder(tmp_path: Path) -> None:
    seen = told("killed", tmp_path)

    assert seen.codes == [-9, 0]
    (folder,) = {name for name in seen.left if name.startswith("runs/doctor-") and name.count("/") == 1}
    fired = json.loads(seen.left[f"{folder}/fired.json"])
    assert (fired["by"], fired["outcome"]) == ("deadman", "restored")
    leftovers = seen.checks()["leftovers"]
    assert leftovers["state"] == "advice"
    assert f"rm -r {inside.HOST_FOLDER}/{folder}" in leftovers["todo"]
    assert seen.sleepers == []
