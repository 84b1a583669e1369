"""A server of known pace: a process of its own on this host that writes down when it sent each piece of its answers.

All processes of a host read the same clock, so that its stamps are the truth which those of the load generator can be
held against. A thread of the generator's own process would stand still whenever the generator does, and show nothing.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import select
import signal
import socket
from time import perf_counter_ns
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

LIFE = 20  # seconds after which it ends, whatever became of its parent
HOST = "127.0.0.1"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"

Stamps = Dict[str, List[int]]  # prompt -> when the request was taken up, and when each piece was sent


class Pace(NamedTuple):
    """How it answers: seconds to the first piece and between two, and how many pieces."""

    first: float
    each: float
    pieces: int


class Stub:
    """A running server; it ends with `stamps`, with its parent, or after its life."""

    def __init__(self, pace: Pace) -> None:
        with socket.create_server((HOST, 0), backlog=64) as listener:
            self.port = int(listener.getsockname()[1])
            self._line, other = socket.socketpair()
            self._pid = os.fork()
            if self._pid == 0:
                self._line.close()
                _live(listener, other, pace)
            other.close()

    def stamps(self) -> Stamps:
        """What it wrote down; ends it.

        Raises:
            OSError: it did not live to say so.
        """
        try:
            self._line.shutdown(socket.SHUT_WR)
            self._line.settimeout(LIFE)
            with self._line.makefile("rb") as line:
                said = line.read()
        finally:
            self._line.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)  # it has said all that it had to say
            os.waitpid(self._pid, 0)
        if not said:
            raise OSError("the server of known pace ended early")
        stamps: Stamps = json.loads(said)
        return stamps


def _live(listener: socket.socket, line: socket.socket, pace: Pace) -> None:
    """The forked process: it never returns into the code of its parent."""
    try:
        signal.alarm(LIFE)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # they are the records and the progress of the parent
            os.dup2(nothing, number)
        line.sendall(json.dumps(_Server(listener, line, pace).serve()).encode("ascii"))
    finally:
        os._exit(0)


class _Server:
    """One thread that waits for requests and for the next piece that is due."""

    def __init__(self, listener: socket.socket, line: socket.socket, pace: Pace) -> None:
        self._listener, self._line, self._pace = listener, line, pace
        self._asking: Dict[socket.socket, bytes] = {}
        self._due: List[Tuple[int, int, socket.socket, List[int]]] = []
        self._stamps: Stamps = {}

    def serve(self) -> Stamps:
        while True:
            wait = max(0, self._due[0][0] - perf_counter_ns()) / 1e9 if self._due else None
            ready, _, _ = select.select([self._listener, self._line, *self._asking], [], [], wait)
            now = perf_counter_ns()
            for one in ready:
                if one is self._line:
                    return self._stamps
                if one is self._listener:
                    self._asking[self._listener.accept()[0]] = b""
                else:
                    self._hear(one, now)
            self._say()

    def _hear(self, caller: socket.socket, now: int) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = caller.recv(65536)
        if not data:
            del self._asking[caller]
            caller.close()
            return
        self._asking[caller] += data
        prompt = _prompt(self._asking[caller])
        if prompt is None:
            return
        del self._asking[caller]
        self._stamps[prompt] = moments = [now]
        with contextlib.suppress(OSError):
            caller.sendall(_HEAD)
        heapq.heappush(self._due, (now + int(self._pace.first * 1e9), len(self._stamps), caller, moments))

    def _say(self) -> None:
        while self._due and self._due[0][0] <= perf_counter_ns():
            due, number, caller, moments = heapq.heappop(self._due)
            piece = _event({"choices": [{"text": "x", "finish_reason": None}]})
            moments.append(perf_counter_ns())
            with contextlib.suppress(OSError):  # it hung up: its record says so
                caller.sendall(piece)
                if len(moments) <= self._pace.pieces:
                    again = (due + int(self._pace.each * 1e9), number, caller, moments)
                    heapq.heappush(self._due, again)
                    continue
                caller.sendall(_end(self._pace.pieces))
            caller.close()


def _prompt(request: bytes) -> Optional[str]:
    """Of a request that is whole; None: more of it has to come."""
    head, end, body = request.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
    return str(json.loads(body)["prompt"]) if end and len(body) >= length else None


def _event(message: Any) -> bytes:
    text = message if isinstance(message, str) else json.dumps(message)
    data = b"data: " + text.encode("ascii") + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def _end(pieces: int) -> bytes:
    usage = {"prompt_tokens": 1, "completion_tokens": pieces}
    last = ({"choices": [{"text": "", "finish_reason": "length"}]}, {"choices": [], "usage": usage}, "[DONE]")
    return b"".join(map(_event, last)) + b"0\r\n\r\n"
