"""Two hosts may be worked on at the same time, and be the first two of the process to run a play."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# While the first thread is still importing ansible-runner (its plugins come last, and this one takes its time), a
# second one runs its play.
BEGUN = """
import threading
begun = threading.Event()
"""
PLUGIN = """
import slow_plugin_begun, time
slow_plugin_begun.begun.set()
time.sleep(1.0)
status_handler = event_handler = lambda *_: None
"""
TWO_PLAYS = """
import sys, threading
from pathlib import Path
import slow_plugin_begun
from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.adapters.shipped import playbooks_folder
from changectl.core.errors import ChangectlError
from changectl.core.ports import HostAddress

def play(wait):
    wait and slow_plugin_begun.begun.wait(30)
    try:
        plays.run("apply", HostAddress("here"), {}, timeout=30)
    except ChangectlError as error:
        said.append(error.reason)
    except BaseException as error:
        said.append(repr(error))

said = []
plays = RunnerPlaybooks(Path(sys.argv[1]), playbooks_folder())
threads = [threading.Thread(target=play, args=(wait,)) for wait in (False, True)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*said)
"""


def test_a_second_host_waits_until_ansible_runner_is_imported_whole(tmp_path: Path) -> None:
    (tmp_path / "slow_plugin_begun.py").write_text(BEGUN)
    (tmp_path / "slow_plugin.py").write_text(PLUGIN)
    installed = tmp_path / "slow_plugin-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-plugin\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[ansible_runner.plugins]\nslow = slow_plugin\n")
    inventory = tmp_path / "hosts.yml"
    inventory.write_text("all:\n  hosts:\n    elsewhere:\n      ansible_connection: local\n")

    path = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    ended = subprocess.run(
        [sys.executable, "-c", TWO_PLAYS, str(inventory)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    # Neither reaches "here", which this inventory lacks: each says so of its own play, and nothing fails before.
    assert ended.stdout.split() == ["host_not_in_stats"] * 2, ended.stdout + ended.stderr
