"""Answer requests, one JSON object per line, until stdin closes; then nothing of ours goes on running."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from typing import Any, BinaryIO, Callable, Dict, List

from . import calls, commands
from .failure import Failure

_FINISH = 10.0  # seconds that a change which has begun gets to end properly


class _Writer:
    """Whole lines only, from several threads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: Dict[str, Any]) -> None:
        data = json.dumps(message).encode("ascii") + b"\n"
        with self._lock:
            try:
                self._stream.write(data)
                self._stream.flush()
            except (BrokenPipeError, ValueError):
                # Nobody listens any more; the end of stdin ends the program in a moment.
                return


def serve() -> int:
    """Serve this process's stdin and stdout; everything else that prints goes to stderr."""
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    writer = _Writer(protocol)
    workers: List[threading.Thread] = []
    for line in iter(sys.stdin.buffer.readline, b""):
        if not line.strip():
            continue
        worker = threading.Thread(target=_answer, args=(line, writer.send), daemon=True)
        worker.start()
        workers = [*(item for item in workers if item.is_alive()), worker]
    calls.closing.set()
    commands.kill_all()
    for worker in workers:
        worker.join(_FINISH)
    commands.kill_all()
    os._exit(0)


def _answer(line: bytes, send: Callable[[Dict[str, Any]], None]) -> None:
    number: Any = None
    try:
        request = json.loads(line)
        number, call, args = request["id"], request["call"], request.get("args") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        send(
            {"id": number, "error": {"reason": "bad_request", "message": "a request is a JSON object with id and call"}}
        )
        return
    try:
        answer = calls.dispatch(call, args, lambda facts: send({"id": number, "progress": facts}))
        send({"id": number, "ok": answer})
    except Failure as failure:
        send({"id": number, "error": failure.as_dict()})
    except Exception as error:  # noqa: BLE001  the controller must hear of every end of a call
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{call}: {type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        send({"id": number, "error": {"reason": "unexpected_error", "message": text}})
