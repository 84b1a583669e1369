"""A local server that answers each request by a script: every way a stream can go wrong, as real bytes on a socket."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
LAST = b"0\r\n\r\n"


@dataclass
class Conversation:
    """One request and the pen for its answer."""

    writer: asyncio.StreamWriter
    number: int
    method_and_path: str
    headers: dict[str, str]
    body: dict[str, object]

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> None:
        await self.raw(HEAD)

    async def data(self, message: object, pause: float = 0.0) -> None:
        """One event, after a pause."""
        await asyncio.sleep(pause)
        text = (b"data: " + (message if isinstance(message, str) else json.dumps(message)).encode()) + b"\n\n"
        await self.raw(b"%x\r\n%s\r\n" % (len(text), text))

    async def text(self, text: str, pause: float = 0.0, finish: str | None = None) -> None:
        await self.data({"choices": [{"text": text, "finish_reason": finish}]}, pause)

    async def delta(self, delta: dict[str, object], pause: float = 0.0, finish: str | None = None) -> None:
        await self.data({"choices": [{"delta": delta, "finish_reason": finish}]}, pause)

    async def usage(self, n_out: int, pause: float = 0.0) -> None:
        details = {"cached_tokens": 2}
        usage = {"prompt_tokens": 10, "completion_tokens": n_out, "prompt_tokens_details": details}
        await self.data({"choices": [], "usage": usage}, pause)

    async def end(self) -> None:
        await self.data("[DONE]")
        await self.raw(LAST)

    async def status(self, line: str, body: bytes = b"", content_type: str = "application/json") -> None:
        lines = (
            f"HTTP/1.1 {line}",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        await self.raw("\r\n".join((*lines, "", "")).encode() + body)


Script = Callable[[Conversation], Awaitable[None]]


@dataclass
class Server:
    """Runs in a thread; `with Server(script) as server`. `seen`: what was asked, in order."""

    script: Script
    seen: list[Conversation] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    port: int = 0
    most_at_once: int = 0
    _now: int = 0

    def __enter__(self) -> Server:
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            request, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            talk = Conversation(writer, len(self.seen), request, headers, body)
            self.seen.append(talk)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            try:
                await self.script(talk)
            finally:
                self._now -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
