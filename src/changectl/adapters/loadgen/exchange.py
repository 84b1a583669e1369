"""One request on one fresh connection.

Bytes are stamped the moment the event loop hands them over and read afterwards: reading the first stream's chunk must
not delay the stamp of the second one's, which arrived together with it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import List, Optional, Tuple, cast

import h11

from changectl.adapters.loadgen import answer as ends
from changectl.adapters.loadgen.answer import Answer

AFTER_END_MARKER = 1.0  # seconds that a server may take to end the response once the answer is whole


class Exchange(asyncio.Protocol):
    """Sends the request when connected, feeds the answer, and sets `ended` to why it ended."""

    def __init__(self, request: h11.Request, body: bytes, answer: Answer) -> None:
        self._request = request
        self._body = body
        self._answer = answer
        self._http = h11.Connection(h11.CLIENT)
        self._arrived: List[Tuple[int, bytes]] = []
        self._loop = asyncio.get_running_loop()
        self._transport: Optional[asyncio.Transport] = None
        self._timer: Optional[asyncio.TimerHandle] = None
        self.ended: "asyncio.Future[str]" = self._loop.create_future()
        self.t_sent: Optional[int] = None
        self.t_end: Optional[int] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send at once: the connection exists for this request."""
        self._transport = cast(asyncio.Transport, transport)
        parts = (self._request, h11.Data(data=self._body), h11.EndOfMessage())
        data = b"".join(self._http.send(part) or b"" for part in parts)
        self.t_sent = perf_counter_ns()
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Stamp now, read later."""
        self._arrived.append((perf_counter_ns(), data))
        if len(self._arrived) == 1:
            self._loop.call_soon(self._read)

    def connection_lost(self, exc: Optional[Exception]) -> None:  # noqa: ARG002  (the name is asyncio's)
        """Everything that came before is read first."""
        self._arrived.append((perf_counter_ns(), b""))
        if len(self._arrived) == 1:
            self._loop.call_soon(self._read)

    def stop_at(self, when: float) -> None:
        """End the exchange at this time of the event loop's clock, unless it ended before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._end, ends.DEADLINE)

    def abort(self) -> None:
        """End the exchange now: the program was told to stop."""
        self._end(ends.ABORTED)

    def _read(self) -> None:
        arrived, self._arrived = self._arrived, []
        for now, data in arrived:
            if self.ended.done():
                return
            try:
                self._http.receive_data(data)
                self._events(now)
            except h11.RemoteProtocolError as error:
                self._answer.broken = str(error)
                self._end(ends.MALFORMED if data else ends.CUT, now)

    def _events(self, now: int) -> None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Response):
                self._answer.head(event.status_code, _header(event, b"content-type"), now)
                if self._is_packed(event):
                    self._end(ends.MALFORMED, now)
                    return
            elif isinstance(event, h11.Data):
                self._body_part(bytes(event.data), now)
                if self.ended.done():
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._answer.end(now)
                self._end(ends.COMPLETE, now)
                return
            elif isinstance(event, h11.ConnectionClosed):
                self._end(ends.CUT, now)
                return

    def _is_packed(self, response: h11.Response) -> bool:
        """Whether the answer is compressed, which nobody asked for: without its events it would pass for empty."""
        packing = _header(response, b"content-encoding").strip().lower()
        if packing in ("", "identity"):
            return False
        self._answer.broken = "the answer is compressed ({}), which was not asked for".format(packing)
        return True

    def _body_part(self, data: bytes, now: int) -> None:
        before = self._answer.done
        self._answer.body(data, now)
        if self._answer.done and not before:
            self.t_end = now
            self.stop_at(self._loop.time() + AFTER_END_MARKER)
        elif self._answer.error is not None:
            self._end(ends.COMPLETE, now)

    def _end(self, why: str, now: Optional[int] = None) -> None:
        if self.ended.done():
            return
        if self.t_end is None:
            self.t_end = perf_counter_ns() if now is None else now
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        self.ended.set_result(why)


def _header(response: h11.Response, wanted: bytes) -> str:
    for name, value in response.headers:
        if name == wanted:
            return bytes(value).decode("latin-1")
    return ""
