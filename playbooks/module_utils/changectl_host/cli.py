"""The program by hand, for a person on the host: `python3 STATE/runs/RUN/program.pyz restore`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Callable, Dict, List

from . import boot, by_hand, calls, deadman, hello, locks, snapshot, state
from .failure import Failure, from_os_error
from .version import VERSION


def main(words: List[str]) -> int:
    """Parse, do, print; returns the exit status: 0 done and equal, 3 refused or different, 2 usage."""
    parser = argparse.ArgumentParser(
        prog="program.pyz", description="What changectl saved on this host: look at it, compare it, bring it back."
    )
    parser.add_argument("--version", action="version", version=f"changectl host program {VERSION}")
    parser.add_argument("action", choices=["restore", "verify", "status", "hello", "deadman", "boot"])
    parser.add_argument("--run", help="the run; default: the one whose folder holds this program")
    parser.add_argument("--state-dir", help="the state folder; default: the one that holds this program")
    parser.add_argument("--restart", action="store_true", help="restore: also stop the service before, and start it")
    parser.add_argument("--detach", action="store_true", help="deadman: go on as a process of its own")
    parser.add_argument("--unit", help="deadman: the unit of systemd that it is")
    options = parser.parse_args(words)
    args = {**vars(options), **_place(options.run, options.state_dir)}
    try:
        try:
            return _ACTIONS[options.action](args)
        except OSError as error:
            raise from_os_error(error, f"{options.action} {error.filename or ''}".strip()) from error
    except Failure as failure:
        sys.stderr.write(f"{options.action}: {failure.message} [{failure.reason}]\n")
        for path, word in failure.details.get("files", {}).items():
            sys.stderr.write(f"  {path}: {word}\n")
        return 3


def _place(run: Any, root: Any) -> Dict[str, Any]:
    """The run and state folder that the program's own place tells."""
    folder = os.path.dirname(os.path.abspath(sys.argv[0]))
    parts = folder.rsplit("/runs/", 1)
    if len(parts) == 2:
        root, run = root or parts[0], run or parts[1]
    above = os.path.dirname(os.path.abspath(root)) if root else ""
    if os.path.basename(above) == locks.UPSTREAMS:
        os.environ[locks.PLACE] = os.path.abspath(str(root))  # its lease lies there, too
    return {"run": run, "state_dir": root}


def _say(text: str) -> None:
    # What files are called is foreign text: control characters must not reach the terminal.
    sys.stdout.write("".join(char if char.isprintable() else repr(char)[1:-1] for char in text) + "\n")


def _restore(args: Dict[str, Any]) -> int:
    restart = bool(args.get("restart"))
    fired = by_hand.restore(state.Run.of(args), restart)
    for path, word in (fired["files"] or {}).items():
        _say(f"{path}: {word}")
    if fired["outcome"] == "nothing_to_do":
        _say("Nothing to do.")
    elif restart:
        pid = fired["started_pid"]
        _say("The files are back and the service was started" + (f" as process {pid}." if pid else "; see its log."))
    else:
        _say("The files are back. Restart the service, so that it reads them.")
    return 0


def _verify(args: Dict[str, Any]) -> int:
    answer = calls.dispatch("verify", args)
    for path, item in answer["files"].items():
        _say(f"{path}: {'equal' if item['equal'] else 'differs in ' + ', '.join(item['differs'])}")
    return 0 if answer["equal"] else 3


def _status(args: Dict[str, Any]) -> int:
    run = state.Run.of(args)
    saved = snapshot.manifest(run)
    _say(f"run {run.name}, generation {run.header().get('generation')}, in {run.folder}")
    for line in by_hand.story(run):
        _say(line)
    for event in run.events():
        what = event.get("path") or event.get("resolved") or event.get("action") or ""
        _say(f"{event['at']}  {event['event']}  {what}".rstrip())
    if saved.get("manager"):
        now = calls.dispatch("status", {**args, "manager": saved["manager"]})
        _say(f"service: {now['active']}" + (f", process {now['process']['pid']}" if now["process"] else ""))
    return _verify(args)


def _hello(args: Dict[str, Any]) -> int:
    for key, value in hello.hello(args).items():
        _say(f"{key}: {value}")
    return 0


_ACTIONS: Dict[str, Callable[[Dict[str, Any]], int]] = {
    "restore": _restore,
    "verify": _verify,
    "status": _status,
    "hello": _hello,
    "deadman": deadman.deadman,
    "boot": boot.boot,
}
