"""A server of streamed answers with a known pace that writes down when it sent each piece, on the client's clock.

Run as a script: `stub.py --ttft 0.05 --tpot 0.005 --tokens 32 --cpu 0 --log FILE`; it prints its port, serves until it
gets SIGTERM, and then writes FILE: per prompt the perf_counter_ns of taking it up and of each content chunk.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from time import perf_counter_ns

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(message: object) -> bytes:
    """One server-sent event in one HTTP chunk."""
    text = message if isinstance(message, str) else json.dumps(message)
    return chunk(b"data: " + text.encode() + b"\n\n")


class PacedServer:
    """Answers every completion request at the same pace. `stamps`: request key -> its moments."""

    def __init__(self, ttft: float, tpot: float, tokens: int) -> None:
        self._ttft, self._tpot, self._tokens = ttft, tpot, tokens
        self.stamps: dict[str, list[int]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            taken = perf_counter_ns()
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
            body = json.loads(await reader.readexactly(length))
            moments = [taken]
            self.stamps[body["prompt"]] = moments
            await self._answer(writer, taken, moments)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, taken: int, moments: list[int]) -> None:
        writer.write(_HEAD)
        for index in range(self._tokens):
            due = taken / 1e9 + self._ttft + index * self._tpot
            await asyncio.sleep(max(0.0, due - perf_counter_ns() / 1e9))
            piece = event({"choices": [{"text": "x", "finish_reason": None}]})
            moments.append(perf_counter_ns())
            writer.write(piece)
        usage = {"prompt_tokens": 8, "completion_tokens": self._tokens, "prompt_tokens_details": {"cached_tokens": 0}}
        writer.write(event({"choices": [{"text": "", "finish_reason": "length"}]}))
        writer.write(event({"choices": [], "usage": usage}) + event("[DONE]") + b"0\r\n\r\n")
        await writer.drain()


async def _main(options: argparse.Namespace) -> None:
    stub = PacedServer(options.ttft, options.tpot, options.tokens)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    server.close()
    Path(options.log).write_text(json.dumps(stub.stamps))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ttft", type=float, default=0.05)
    parser.add_argument("--tpot", type=float, default=0.005)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--log", required=True)
    arguments = parser.parse_args()
    if arguments.cpu is not None:
        os.sched_setaffinity(0, {arguments.cpu})
    asyncio.run(_main(arguments))
