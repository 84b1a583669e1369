"""A world of its own for `changectl doctor` on this machine: nothing of the machine's own folder is in sight.

`doctor_world.py ORDER.json RESULT.json` is started by `unshare` as process 1 of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.inside import HOST_FOLDER, bury_until, hide, loopback_up, mount_tmpfs

from changectl_host import dispatch

CHANGECTL = Path(sys.executable).parent / "changectl"
HOLDER = {"run": "20261130-081502-chat-k3f7.1", "generation": 1, "nonce": "theirs", "owner": "kim@desk",
          "controller": "20261130-081502-chat-k3f7"}  # fmt: skip


def look(folder: Path, strike: Callable[[subprocess.Popen[str]], None] | None = None) -> dict[str, Any]:
    """Run the installed command; `strike` gets it while the proof waits for the dead-man."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(
        [CHANGECTL, "doctor", "-i", "hosts.yml", "--json"], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if strike is not None:
        threading.Thread(target=_when_left_alone, args=(process, strike), daemon=True).start()
    out, err = process.communicate(timeout=120)
    return {"code": process.returncode, "out": out, "err": err}


def _when_left_alone(process: subprocess.Popen[str], strike: Callable[[subprocess.Popen[str]], None]) -> None:
    while process.poll() is None:
        lease = _read(HOST_FOLDER / "lease.json")
        if lease.get("seconds") == 2.0 and list(HOST_FOLDER.glob("runs/doctor-*/armed.json")):
            strike(process)
            return
        time.sleep(0.01)


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found


def blind(_: subprocess.Popen[str]) -> None:
    """Kill what keeps watch; nobody starts it again here."""
    for lock in HOST_FOLDER.glob("runs/doctor-*/keeper.lock"):
        os.kill(_read(lock)["pid"], signal.SIGKILL)


def rewrite(_: subprocess.Popen[str]) -> None:
    """Somebody else's hand in the scratch file: it must not be written over."""
    for armed in HOST_FOLDER.glob("runs/doctor-*/armed.json"):
        Path(_read(armed)["only"][0]).write_text("somebody else's\n")


def sound(folder: Path) -> list[dict[str, Any]]:
    return [look(folder)]


def twice(folder: Path) -> list[dict[str, Any]]:
    """A run that was kept has left its folder there, and a second look finds what the first one found."""
    kept = {"run": "20261130-081502-chat-k3f7.1", "generation": 1, "nonce": "n"}
    dispatch("lease", {**kept, "seconds": 60, "owner": "kim@desk", "controller": "r"})
    dispatch("capture", {**kept, "files": []})
    dispatch("release", kept)
    return [look(folder), look(folder)]


def held(folder: Path) -> list[dict[str, Any]]:
    dispatch("lease", {**HOLDER, "seconds": 60})
    return [look(folder)]


def full(folder: Path) -> list[dict[str, Any]]:
    mount_tmpfs(HOST_FOLDER, "64k", "0700")
    with (HOST_FOLDER / "others").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    return [look(folder)]


def open_to_all(folder: Path) -> list[dict[str, Any]]:
    HOST_FOLDER.chmod(0o777)
    return [look(folder)]


def blinded(folder: Path) -> list[dict[str, Any]]:
    return [look(folder, blind)]


def rewritten(folder: Path) -> list[dict[str, Any]]:
    return [look(folder, rewrite)]


def interrupted(folder: Path) -> list[dict[str, Any]]:
    return [look(folder, lambda process: process.send_signal(signal.SIGTERM))]


def killed(folder: Path) -> list[dict[str, Any]]:
    """Killed in the proof; the dead-man acts by itself, and the next look names what is left and how it goes."""
    first = look(folder, lambda process: process.send_signal(signal.SIGKILL))
    until = time.monotonic() + 20
    while list(HOST_FOLDER.glob("runs/doctor-*/armed.json")) and time.monotonic() < until:
        time.sleep(0.05)
    return [first, look(folder)]


STORIES = {story.__name__: story for story in
           (sound, twice, held, full, open_to_all, blinded, rewritten, interrupted, killed)}  # fmt: skip


def sleepers() -> list[str]:
    """The command lines of whatever still keeps watch in this world."""
    lines = [_command(place) for place in Path("/proc").glob("[0-9]*")]
    return [line for line in lines if " deadman " in line]


def _command(place: Path) -> str:
    try:
        return (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def main(order: Path, result: Path) -> int:
    """Make the world, let a child do the story in it, bury the dead."""
    hide()
    loopback_up()
    child = os.fork()
    if child:
        return bury_until(child)
    asked = json.loads(order.read_text())
    looks = STORIES[asked["story"]](Path(asked["folder"]))
    left = {str(path.relative_to(HOST_FOLDER)): path.read_text(errors="replace") if path.is_file() else ""
            for path in sorted(HOST_FOLDER.rglob("*"))}  # fmt: skip
    result.write_text(json.dumps({"looks": looks, "left": left, "sleepers": sleepers()}))
    return 0


if __name__ == "__main__":
    code = main(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.flush()
    os._exit(code)
