"""Faults that the lab's llama.cpp launcher can be given by openly named settings: stand-ins for real ones.

No engine from a registry leaks memory on request, or lets a share of its requests wait. So the lab's copy of the
launcher, and no other, holds what stands here (see `faults.py`): it reads `LAB_FAULT_...` variables, says at its start
that it is a stand-in, and does what they say.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from typing import Any

INNER = 1000  # the server behind a relay listens on the port so much higher


def leak(setting: str) -> None:
    """A stand-in for an engine that leaks: `8@20` is 8 MB a second, from 20 s after the start on."""
    rate, _, begin = setting.partition("@")
    sys.stderr.write(f"lab: a stand-in for a leak: {rate} MB a second, from {begin or 0} s after the start on\n")
    leaked: list[bytes] = []

    def go_on() -> None:
        time.sleep(float(begin or 0))
        while True:
            leaked.append(b"x" * int(float(rate) * 1e5))
            time.sleep(0.1)

    threading.Thread(target=go_on, daemon=True).start()


def slow_tail(setting: str) -> None:
    """A stand-in for an engine with a slow tail: `10@600` lets every tenth request wait 600 ms, `0@600` none.

    With either value the server listens behind a relay, so that the two differ in nothing else.
    """
    every, _, wait = setting.partition("@")
    sys.stderr.write(f"lab: a stand-in for a slow tail: every {every}th request waits {wait} ms (0: none does)\n")
    launcher: Any = sys.modules["__main__"]
    unchanged = launcher.parameters

    def behind_the_relay(settings: dict[str, Any]) -> Any:
        filled = unchanged(settings)
        relay = _Relay(int(every), float(wait) / 1000, filled.port + INNER)
        outside = (list(filled.hostnames), filled.port)
        filled.hostnames, filled.port = ["127.0.0.1"], filled.port + INNER
        threading.Thread(target=lambda: asyncio.run(relay.serve(*outside)), daemon=True).start()
        return filled

    launcher.parameters = behind_the_relay


class _Relay:
    """Hands bytes on to a port of this host; some requests wait before they are."""

    def __init__(self, every: int, seconds: float, port: int) -> None:
        self._every, self._seconds, self._port = every, seconds, port
        self._asked = 0

    async def serve(self, hosts: list[str], port: int) -> None:
        """Take connections for ever, on any core: what is slow shall be the tail alone, and not the engine."""
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        server = await asyncio.start_server(self._connection, hosts, port)
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            begun = await reader.read(65536)
            if begun.startswith(b"POST"):
                self._asked += 1
                if self._every and self._asked % self._every == 0:
                    await asyncio.sleep(self._seconds)
            answers, inner = await asyncio.open_connection("127.0.0.1", self._port)
            inner.write(begun)
            await asyncio.gather(_hand_on(reader, inner), _hand_on(answers, writer))


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


if __name__ == "__main__":
    for _name, _fault in (("LAB_FAULT_LEAK", leak), ("LAB_FAULT_TAIL", slow_tail)):
        if _setting := os.environ.get(_name):
            _fault(_setting)
