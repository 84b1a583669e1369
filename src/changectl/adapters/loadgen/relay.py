"""A way to the service that is longer by a known time: a process of its own that passes on what both sides say.

It proves that a longer way shows. The delay lies on the way of the bytes, after the connection is there and before the
request goes on, so that it is in everything that is stamped from then on, and nobody adds it to a figure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from typing import Tuple

from changectl.adapters.loadgen import loop as event_loop

HOST = "127.0.0.1"
_CHUNK = 65536


class Relay:
    """A running relay to an address; it ends with `close`, or with the process that started it."""

    def __init__(self, address: str, port: int, delay: float) -> None:
        with socket.create_server((HOST, 0), backlog=1024) as listener:
            self.port = int(listener.getsockname()[1])
            self._line, other = socket.socketpair()
            self._pid = os.fork()
            if self._pid == 0:
                self._line.close()
                _live(listener, other, (address, port), delay)
            other.close()

    def close(self) -> None:
        """End it, and every connection that goes through it."""
        self._line.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _live(listener: socket.socket, line: socket.socket, onward: Tuple[str, int], delay: float) -> None:
    """The forked process: it never returns into the code of its parent."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # they are the job, the records and the progress of the parent
            os.dup2(nothing, number)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the parent ends what is under way, and then this
        event_loop.run(_serve(listener, line, onward, delay))
    finally:
        os._exit(0)


async def _serve(listener: socket.socket, line: socket.socket, onward: Tuple[str, int], delay: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await asyncio.sleep(delay)
            answers, onto = await asyncio.open_connection(*onward)
            await asyncio.gather(_pass_on(reader, onto), _pass_on(answers, writer))
        writer.close()  # also where nobody listens there: the client sees a connection that was cut

    server = await asyncio.start_server(connected, sock=listener)
    line.setblocking(False)
    with contextlib.suppress(OSError):
        await asyncio.get_running_loop().sock_recv(line, 1)  # nothing is ever said: it ends with the parent
    server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What arrives goes on as it is, at once."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
