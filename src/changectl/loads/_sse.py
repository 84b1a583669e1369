"""Server-sent events: bytes in, events out, however the bytes were cut on their way."""

from __future__ import annotations

from typing import List, NamedTuple


class Event(NamedTuple):
    """One event: its name (empty: a plain message) and its data lines joined."""

    name: str
    data: str


class EventReader:
    """Collects bytes until events are whole. Comments and pings are not events."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: List[str] = []

    def feed(self, data: bytes) -> List[Event]:
        """The events that these bytes complete."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        events: List[Event] = []
        for raw in lines:
            line = raw[:-1] if raw.endswith(b"\r") else raw
            if line:
                self._field(line)
            elif self._data or self._name:
                events.append(self._whole())
        return events

    def finish(self) -> List[Event]:
        """What a stream that ended without its last blank line still held."""
        if self._rest:
            self._field(self._rest.rstrip(b"\r"))
            self._rest = b""
        return [self._whole()] if self._data or self._name else []

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
