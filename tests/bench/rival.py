"""The usual measuring client, as benchmark scripts have it: a job on stdin, one row per request as JSON on stdout.

With aiohttp where the interpreter has it, a session per request; otherwise written anew on asyncio's streams: read a
line, parse it, then look at the clock. Needs nothing of this repository, so that any interpreter can run it.

A row: prompt, and in nanoseconds when the request was due, begun, its first and last token; then the tokens.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter_ns

Request = Callable[[int, bytes], Awaitable["list[int]"]]


async def plain(port: int, body: bytes) -> list[int]:
    """Read a line, parse it, look at the clock."""
    begun = perf_counter_ns()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    moments = []
    while line := await reader.readline():
        if line.startswith(b"data: {"):
            message = json.loads(line[6:])
            if message["choices"] and message["choices"][0]["text"]:
                moments.append(perf_counter_ns())
    writer.close()
    return [begun, moments[0], moments[-1], len(moments)]


async def with_aiohttp(port: int, body: bytes) -> list[int]:
    """The same with aiohttp."""
    import aiohttp

    begun, moments = perf_counter_ns(), []
    url = f"http://127.0.0.1:{port}/v1/completions"
    async with aiohttp.ClientSession() as session, session.post(url, data=body) as response:
        async for line in response.content:
            if line.startswith(b"data: {"):
                message = json.loads(line[6:])
                if message["choices"] and message["choices"][0]["text"]:
                    moments.append(perf_counter_ns())
    return [begun, moments[0], moments[-1], len(moments)]


class Run:
    """The job under way."""

    def __init__(self, job: dict[str, object], request: Request) -> None:
        self._port = int(re.search(r"(\d+)$", str(job["endpoint"]))[1])  # type: ignore[index]
        self._request = request
        self._begun = perf_counter_ns()
        self.rows: list[list[object]] = []

    async def send(self, prompt: str, due: int) -> None:
        """One request that is due."""
        self.rows.append([prompt, due, *await self._request(self._port, json.dumps({"prompt": prompt}).encode())])

    async def stream(self, number: int, stagger: float, requests: int | None, seconds: float | None) -> None:
        """Send the next request when the last one is answered."""
        due, index = self._begun + int(number * stagger * 1e9), 0
        await asyncio.sleep(number * stagger)
        while index < requests if requests else (due - self._begun) / 1e9 < (seconds or 0):
            await self.send(f"stream {number} request {index}", due)
            due, index = perf_counter_ns(), index + 1

    async def schedule(self, offsets: list[int]) -> None:
        """Send each request when it is due, whatever became of the others."""
        tasks = []
        for index, offset in enumerate(offsets):
            await asyncio.sleep(max(0.0, (self._begun + offset - perf_counter_ns()) / 1e9))
            tasks.append(asyncio.create_task(self.send(f"request {index}", self._begun + offset)))
        await asyncio.gather(*tasks)


async def main() -> None:
    """Do the job: `schedule` (offsets in ns), or `streams` with `requests` of each or `seconds`."""
    job = json.load(sys.stdin)
    if job["cpus"]:
        os.sched_setaffinity(0, job["cpus"])
    run = Run(job, with_aiohttp if importlib.util.find_spec("aiohttp") else plain)
    if "schedule" in job:
        await run.schedule(job["schedule"])
    else:
        each = (job["stagger"], job.get("requests"), job.get("seconds"))
        await asyncio.gather(*(run.stream(number, *each) for number in range(job["streams"])))
    sys.stdout.write(json.dumps(run.rows))


if __name__ == "__main__":
    asyncio.run(main())
