"""One answer as it arrives: which events count, when, and what became of the request. Knows no sockets and no clock."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Optional

from changectl.adapters.loadgen.job import Item
from changectl.loads import _openai
from changectl.loads._sse import Event, EventReader

TEXT_CAP = 500
PLAIN_CAP = 64 << 10  # bytes of an answer that should have been a stream: enough for what it says
WHOLE_CAP = 64 << 20  # bytes of an answer that comes whole
ERROR_CAP = 200

# Why an exchange ended.
COMPLETE = "complete"  # the response is whole, as HTTP sees it
CUT = "cut"  # the connection ended in the middle
DEADLINE = "deadline"
ABORTED = "aborted"  # by this program, because it was told to stop
MALFORMED = "malformed"  # what came is not HTTP


class Answer:
    """Collects what one response brings. Times are whatever the caller stamps."""

    def __init__(self, protocol: Any, item: Item) -> None:
        self._protocol = protocol
        self._item = item
        self._keeps_text = item.quality or bool(item.follow_ups) or item.expected is not None
        self._events = EventReader()
        self._digest = hashlib.sha256()
        self._hashed = "output"  # what of the answer was hashed last
        self._texts: List[str] = []
        self._plain = bytearray()  # the body of an answer that is no event stream
        self._streaming = False
        self.status: Optional[int] = None
        self.t_headers: Optional[int] = None
        self.t_first: Optional[int] = None
        self.t_first_output: Optional[int] = None
        self.t_last: Optional[int] = None
        self.chunks = 0
        self.max_gap: Optional[int] = None
        self.finish: Optional[str] = None
        self.done = False
        self.error: Optional[str] = None
        self.broken: Optional[str] = None  # what was wrong with the response as HTTP
        self.usage = _openai.Usage(None, None, None)

    def head(self, status: int, content_type: str, now: int) -> None:
        """The status line and the headers came."""
        self.status = status
        self.t_headers = now
        streams = content_type.split(";")[0].strip().lower() == "text/event-stream"
        self._streaming = self._protocol.STREAMED and 200 <= status < 300 and streams

    def body(self, data: bytes, now: int) -> None:
        """A part of the body came."""
        if not self._streaming:
            most = PLAIN_CAP if self._protocol.STREAMED else WHOLE_CAP
            self._plain += data[: most - len(self._plain)]
            return
        for event in self._events.feed(data):
            self._event(event, now)

    def end(self, now: int) -> None:
        """The body is whole."""
        for event in self._events.finish():
            self._event(event, now)
        if not self._protocol.STREAMED and self.status is not None and 200 <= self.status < 300:
            self._whole(now)

    def _whole(self, now: int) -> None:
        if len(self._plain) >= WHOLE_CAP:
            self.broken = "the answer is larger than {} MiB".format(WHOLE_CAP >> 20)
            return
        piece = self._protocol.read(self._plain.decode("utf-8", "replace"))
        self.error, self.broken, self.done = piece.error, piece.broken, piece.done
        if piece.usage is not None:
            self.usage = piece.usage
        if piece.finish is not None:
            self.finish, self.t_last = piece.finish, now

    def _event(self, event: Event, now: int) -> None:
        if self.done or self.error is not None:
            return
        piece = self._protocol.classify(event)
        if piece.error is not None:
            self.error = piece.error
            return
        if piece.content:
            self._content(piece, now)
        if piece.finish is not None:
            self.finish = piece.finish
        if piece.usage is not None:
            self.usage = _later(self.usage, piece.usage)
        self.done = self.done or piece.done

    def _content(self, piece: Any, now: int) -> None:
        self.chunks += 1
        if self.t_first is None:
            self.t_first = now
        if self.t_last is not None:
            self.max_gap = max(self.max_gap or 0, now - self.t_last)
        self.t_last = now
        self._hash(piece)
        if piece.output or piece.tool:
            if self.t_first_output is None:
                self.t_first_output = now
            if self._keeps_text:
                self._texts.append(piece.output)

    def _hash(self, piece: Any) -> None:
        """All that was said counts, thoughts and tool calls too, and not how the server cut it into events."""
        for kind, text in (("reasoning", piece.reasoning), ("output", piece.output), ("called", piece.called)):
            if text and kind != self._hashed:
                self._digest.update("\0{}\0".format(kind).encode("ascii"))
                self._hashed = kind
            self._digest.update(text.encode("utf-8", "replace"))

    @property
    def said(self) -> str:
        """The answer's text without its reasoning, where something has to be done with it."""
        return "".join(self._texts)

    def outcome(self, ended: str) -> str:
        """The class of failure, or "ok"; may fill in `error`."""
        if ended == ABORTED:
            return "client_abort"
        if self.status is not None and not 200 <= self.status < 300:
            return self._refusal(self.status)
        if self.error is not None:
            return "inband_error"
        if ended == DEADLINE and not self.done:
            return "read_timeout" if self.t_headers is None else "late"
        if self.status is not None and not self._streaming and ended == COMPLETE:
            return self._not_streamed() if self._protocol.STREAMED else self._not_whole() or "ok"
        if ended in (MALFORMED, CUT) and not self.done:
            self.error = self.broken or "the connection ended before the answer did"
            return "malformed" if ended == MALFORMED else "truncated"
        if self.chunks == 0 and not self._item.may_be_empty:
            return "empty"
        if not self.done and self.finish is None:
            return "truncated"
        return "ok" if self._is_expected() else "unexpected"

    def _is_expected(self) -> bool:
        """Whether the text that has to be in the answer is there; upper case and line breaks do not matter."""
        expected = self._item.expected
        if expected is None or _plain(expected) in _plain(self.said):
            return True
        self.error = "the answer does not contain {}".format(json.dumps(expected[:ERROR_CAP], ensure_ascii=False))
        return False

    def _not_whole(self) -> str:
        """The class of failure of an answer that came whole; "": it is good."""
        if self.broken is not None:
            self.error = self.broken
            return "malformed"
        return "" if self.finish is not None else "empty"

    def _refusal(self, status: int) -> str:
        self.error = self._plain_error() or "HTTP status {}".format(status)
        if status == 429:
            return "http_429"
        return {4: "http_4xx", 5: "http_5xx"}.get(status // 100, "http_other")

    def _not_streamed(self) -> str:
        """A whole answer at once would make the time to the first token the time of everything."""
        said = self._plain_error(only_json=True)
        self.error = said or "the answer is not an event stream"
        return "inband_error" if said else "malformed"

    def _plain_error(self, *, only_json: bool = False) -> str:
        text = self._plain.decode("utf-8", "replace").strip()
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            return _openai.message_error(message) or ""
        return "" if only_json else text[:ERROR_CAP]

    def fields(self) -> Dict[str, Any]:
        """The record's fields that the answer decides."""
        return {
            "t_headers": self.t_headers,
            "t_first": self.t_first,
            "t_first_output": self.t_first_output,
            "t_last": self.t_last,
            "n_out": self.usage.n_out,
            "n_in": self.usage.n_in,
            "cached": self.usage.cached,
            "chunks": self.chunks,
            "max_gap_ns": self.max_gap,
            "finish": self.finish,
            "status": self.status,
            "error": self.error,
            "text_sha": self._digest.hexdigest() if self.chunks else None,
            "text": self.said[:TEXT_CAP] if self._item.quality else None,
        }


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _later(old: _openai.Usage, new: _openai.Usage) -> _openai.Usage:
    """Counts grow while an answer streams: the last one said holds."""
    return _openai.Usage(
        new.n_in if new.n_in is not None else old.n_in,
        new.n_out if new.n_out is not None else old.n_out,
        new.cached if new.cached is not None else old.cached,
    )
