"""`python -m changectl.demo`: changectl on a real server, with nothing but Python; about two minutes."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from changectl.core.errors import ChangectlError
from changectl.demo.project import check_folder
from changectl.demo.server import NotAsPromised
from changectl.demo.story import Demo

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 all as promised, 1 not, 2 it cannot run here, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m changectl.demo",
        description="Start a real inference server, keep one change, take one back, show the record.",
    )
    parser.add_argument("--dir", type=Path, default=Path("demo-work"), help="the demo's folder (default: ./demo-work)")
    folder = parser.parse_args(arguments).dir.expanduser().absolute()
    try:
        check_folder(folder)
        for number in _SIGNALS:
            signal.signal(number, _interrupt)
        demo = Demo.at(folder)
    except (ChangectlError, OSError) as problem:
        sys.stderr.write(f"The demo cannot run: {problem}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return _run(demo)


def _run(demo: Demo) -> int:
    try:
        code, words = _told(demo)
    finally:
        _deaf()
        demo.server.stop()
    if words:
        sys.stderr.write(f"\n{words}\nWhat was started is stopped.\n")
    else:
        demo.next_steps()
    return code


def _told(demo: Demo) -> tuple[int, str]:
    """The exit code, and what to say about it where it is not 0."""
    try:
        demo.tell()
    except NotAsPromised as problem:
        return 1, f"Not as promised: {problem}"
    except KeyboardInterrupt:
        return 130, "Interrupted."
    return 0, ""


def _interrupt(*_: Any) -> None:
    _deaf()  # a second Ctrl-C must not stop the way back that the first one began
    raise KeyboardInterrupt


def _deaf() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    raise SystemExit(main())
