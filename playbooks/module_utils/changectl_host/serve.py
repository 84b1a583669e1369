"""Answer requests, one JSON object per line, until stdin closes; then nothing of ours goes on running.

A connection that was cut closes nothing for a long time. So a request may name a `silence`: for as long as it is
answered, the controller is told every second that we live, and tells that it does, with a line that may be empty. When
it was not heard for so many seconds, everything ends here as if stdin had closed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO, Callable, Dict, List

from . import calls, commands
from .failure import Failure

_FINISH = 10.0  # seconds that a change which has begun gets to end properly
_BEAT = 1.0  # seconds between two signs of life


class _Writer:
    """Whole lines only, from several threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Dict[str, Any]) -> None:
        with self._lock:
            self._write(message)

    def beat(self, number: Any) -> None:
        """Say that we live, unless something is being sent, which says so too, and may take its time."""
        if self._lock.acquire(blocking=False):
            try:
                self._write({"id": number, "alive": True})
            finally:
                self._lock.release()

    def _write(self, message: Dict[str, Any]) -> None:
        try:
            self._stream.write(json.dumps(message).encode("ascii") + b"\n")
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            # Nobody listens any more; the end of stdin ends the program in a moment.
            return


class _Controller:
    """When the controller was heard last."""

    def __init__(self) -> None:
        self._heard = time.monotonic()

    def hear(self) -> None:
        self._heard = time.monotonic()

    @property
    def silent(self) -> float:
        return time.monotonic() - self._heard


def serve() -> int:
    """Serve this process's stdin and stdout; everything else that prints goes to stderr."""
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    writer, controller = _Writer(protocol), _Controller()
    workers: List[threading.Thread] = []
    for line in iter(sys.stdin.buffer.readline, b""):
        controller.hear()
        if not line.strip():
            continue
        worker = threading.Thread(target=_answer, args=(line, writer, controller), daemon=True)
        worker.start()
        workers = [*(item for item in workers if item.is_alive()), worker]
    calls.closing.set()
    commands.kill_all()
    for worker in workers:
        worker.join(_FINISH)
    commands.kill_all()
    os._exit(0)


def _answer(line: bytes, writer: _Writer, controller: _Controller) -> None:
    number: Any = None
    try:
        request = json.loads(line)
        number, call, args = request["id"], request["call"], request.get("args") or {}
        silence = float(request.get("silence") or 0)
    except (ValueError, KeyError, TypeError, AttributeError):
        error = {"reason": "bad_request", "message": "a request is a JSON object with id and call"}
        writer.send({"id": number, "error": error})
        return
    over = threading.Event()
    if silence:
        threading.Thread(target=_stay_in_touch, args=(number, silence, over, writer, controller), daemon=True).start()
    try:
        _carry_out(number, call, args, writer.send)
    finally:
        over.set()


def _stay_in_touch(
    number: Any, silence: float, over: threading.Event, writer: _Writer, controller: _Controller
) -> None:
    """Until the call is over: say that we live, and end everything when the controller does not say so any more."""
    while not over.wait(_BEAT):
        if controller.silent > silence:
            calls.closing.set()
            commands.kill_all()
            os._exit(1)
        writer.beat(number)


def _carry_out(number: Any, call: str, args: Dict[str, Any], send: Callable[[Dict[str, Any]], None]) -> None:
    try:
        answer = calls.dispatch(call, args, lambda facts: send({"id": number, "progress": facts}))
        send({"id": number, "ok": answer})
    except Failure as failure:
        send({"id": number, "error": failure.as_dict()})
    except Exception as error:  # noqa: BLE001  the controller must hear of every end of a call
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{call}: {type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        send({"id": number, "error": {"reason": "unexpected_error", "message": text}})
