"""Server-sent events: bytes in, events out, however the bytes were cut on their way."""

from __future__ import annotations

from codecs import BOM_UTF8 as _MARK
from typing import List, NamedTuple


class Event(NamedTuple):
    """One event: its name (empty: a plain message) and its data lines joined."""

    name: str
    data: str


class EventReader:
    """Collects bytes until events are whole. Comments and pings are not events.

    A line ends with CR LF, LF or CR, as the standard has it (WHATWG HTML, "Server-sent events": parsing).
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of a line that has not ended
        self._began = False
        self._after_cr = False
        self._name = ""
        self._data: List[str] = []

    def feed(self, data: bytes) -> List[Event]:
        """The events that these bytes complete."""
        if not data:
            return []
        half = self._after_cr and data.startswith(b"\n")  # the other half of the last line's end
        self._after_cr = data.endswith(b"\r")
        *whole, rest = data[half:].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: List[Event] = []
        for end in whole:
            self._rest += end
            self._line(bytes(self._rest), events)
            self._rest.clear()
        self._rest += rest
        return events

    def finish(self) -> List[Event]:
        """What a stream that ended without its last blank line still held."""
        events: List[Event] = []
        for line in (bytes(self._rest), b""):
            self._line(line, events)
        self._rest.clear()
        return events

    def _line(self, line: bytes, events: List[Event]) -> None:
        if not self._began and line.startswith(_MARK):
            line = line[len(_MARK) :]
        self._began = True
        if line:
            self._field(line)
        elif self._data or self._name:
            events.append(self._whole())

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        text = (value[1:] if value.startswith(b" ") else value).decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._name = text
        elif name == b"error":  # not in the standard, but some servers report failures in a field of this name
            self._name = "error"
            self._data.append(text)

    def _whole(self) -> Event:
        event = Event(self._name, "\n".join(self._data))
        self._name, self._data = "", []
        return event
