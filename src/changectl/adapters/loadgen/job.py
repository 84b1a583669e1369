"""The job: what to send, where, how much of it. Checked whole before the first request."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from changectl import loads
from changectl.adapters.loadgen.enough import Enough, enough

WARMUP = "warmup"  # the level name of requests that no one judges
POISSON = "poisson"  # how requests of an open level arrive
MOST_REQUESTS = 1_000_000  # of one level: their records are held until it ends


class JobError(ValueError):
    """The job cannot be done as written; the text says why."""


class Endpoint(NamedTuple):
    """Where the service listens."""

    tls: bool
    host: str
    port: int
    prefix: str  # of every path, without a slash at its end

    @property
    def authority(self) -> str:
        """As the Host header names it."""
        host = "[{}]".format(self.host) if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else "{}:{}".format(host, self.port)


class Level(NamedTuple):
    """A closed level is so many streams, each sending its next request when the last one is answered.

    An open one has no streams: so many requests within so many seconds, each sent when its schedule says.
    """

    name: str
    streams: Optional[int]  # None: an open level
    seconds: Optional[float]  # no request begins after them
    requests: Optional[int]
    enough: Optional[Enough] = None  # precise figures that end it before its seconds; None: nothing does

    @property
    def counted(self) -> bool:
        """Whether the number of its requests is known beforehand."""
        return self.streams is None or self.seconds is None


class Item(NamedTuple):
    """One request of the workload: a prompt, or one turn of a conversation."""

    id: str
    content: Mapping[str, Any]  # {"prompt": text}, {"messages": [...]} or {"inputs": [...]}
    max_tokens: int
    may_be_empty: bool = False
    quality: bool = False  # sent unsalted, its answer's text is recorded
    expected: Optional[str] = None  # text that a good answer contains
    turn: Optional[int] = None  # of a conversation, from 1
    follow_ups: Tuple[str, ...] = ()  # what the user says next, once this is answered

    @property
    def name(self) -> str:
        """How records name it."""
        return self.id if self.turn is None else "{}#{}".format(self.id, self.turn)

    def followed(self, answer: str) -> "Item":
        """The conversation's next turn: all that was said so far, this answer too, and what the user says next."""
        said = [{"role": "assistant", "content": answer}, {"role": "user", "content": self.follow_ups[0]}]
        content = {"messages": [*self.content["messages"], *said]}
        return self._replace(content=content, turn=(self.turn or 1) + 1, follow_ups=self.follow_ups[1:])


class Job(NamedTuple):
    """Everything that the generator needs to know."""

    endpoint: Endpoint
    protocol: str
    headers: List[Tuple[str, str]]
    model: str
    workload: List[Item]
    levels: List[Level]
    salt: str
    seed: int
    deadline: float
    connect_timeout: float
    stagger: float
    include_usage: bool
    body: Dict[str, Any]
    tls_verify: bool
    tls_ca: Optional[str]
    cpus: Optional[List[int]]
    self_test: Optional[Dict[str, float]]  # the limits of its figures, in seconds; None: there is none
    relay: Optional[float]  # seconds that the way to the service is made longer; None: it is the straight one


def parse_job(text: str) -> Job:
    """The job of a JSON document.

    Raises:
        JobError: a field is missing, of the wrong type, or makes no sense.
    """
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise JobError("the job is not JSON: {}".format(error)) from error
    if not isinstance(raw, dict):
        raise JobError("the job is not a JSON object")
    protocol = _get(raw, "protocol", str)
    if protocol not in loads.names():
        raise JobError('unknown protocol "{}"; known: {}'.format(protocol, ", ".join(loads.names())))
    if raw.get("fresh_connections", True) is not True:
        raise JobError("only fresh connections are supported: leave fresh_connections out")
    tls = _get(raw, "tls", dict, {})
    return Job(
        endpoint=_endpoint(_get(raw, "endpoint", str)),
        protocol=protocol,
        headers=_headers(_get(raw, "headers", dict, {})),
        model=_get(raw, "model", str),
        workload=_workload(_get(raw, "workload", list), streamed=loads.load(protocol).STREAMED),
        levels=_levels(raw),
        salt=_get(raw, "salt", str),
        seed=_get(raw, "seed", int, 0),
        deadline=_positive(raw, "deadline"),
        connect_timeout=_positive(raw, "connect_timeout", 5.0),
        stagger=float(_get(raw, "stagger", (int, float), 0.02)),
        include_usage=_get(raw, "include_usage", bool, True),
        body=_get(raw, "body", dict, {}),
        tls_verify=_get(tls, "verify", bool, True),
        tls_ca=_get(tls, "ca", str, None),
        cpus=_get(raw, "cpus", list, None),
        self_test=_limits(_get(raw, "self_test", dict, None)),
        relay=_delay(_get(raw, "relay", dict, None)),
    )


def _get(raw: Mapping[str, Any], name: str, kind: Any, *default: Any) -> Any:
    value = raw.get(name)
    if value is None and default:
        return default[0]
    if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
        return value
    # The value itself is not shown: where a token stands in the wrong place, it must not reach an error text.
    raise JobError('"{}" is of type {}; another one is needed'.format(name, type(value).__name__))


def _positive(raw: Mapping[str, Any], name: str, *default: float) -> float:
    value = float(_get(raw, name, (int, float), *default))
    if not 0 < value < float("inf"):
        raise JobError('"{}" must be a number above zero'.format(name))
    return value


def _delay(raw: Optional[Dict[str, Any]]) -> Optional[float]:
    if raw is None:
        return None
    delay = float(_get(raw, "delay", (int, float)))
    if not 0 <= delay < float("inf"):
        raise JobError('"delay" must be a number of seconds, zero or more')
    return delay


def _limits(raw: Optional[Dict[str, Any]]) -> Optional[Dict[str, float]]:
    return None if raw is None else {name: _positive(raw, name) for name in raw}


def _headers(raw: Mapping[str, Any]) -> List[Tuple[str, str]]:
    for name, value in raw.items():
        if not (isinstance(value, str) and _one_line(value) and _one_line(name) and name and " " not in name):
            raise JobError('header "{}" is not one line of plain ASCII'.format(name))
    return [(name, value.strip()) for name, value in raw.items()]


def _one_line(text: str) -> bool:
    return all(" " <= character <= "~" for character in text)


def _endpoint(url: str) -> Endpoint:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise JobError("the endpoint is not a URL: {}".format(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise JobError("the endpoint must be http://HOST:PORT or https://HOST:PORT")
    if not _one_line(url) or " " in url:
        raise JobError("the endpoint must be plain ASCII without spaces")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise JobError("the endpoint must not hold credentials, a query or a fragment")
    tls = parts.scheme == "https"
    return Endpoint(tls, parts.hostname, port or (443 if tls else 80), parts.path.rstrip("/"))


def _workload(raw: List[Any], *, streamed: bool) -> List[Item]:
    items = [_item(member, streamed=streamed) for member in raw]
    if not items:
        raise JobError("the workload is empty")
    if len({item.id for item in items}) != len(items):
        raise JobError("two prompts of the workload have the same id")
    return items


def _item(raw: Any, *, streamed: bool) -> Item:
    if not isinstance(raw, dict):
        raise JobError("a member of the workload is not an object")
    # What comes whole is not made token by token, and nothing limits how many there are.
    max_tokens = _get(raw, "max_tokens", int, *(() if streamed else (1,)))
    if max_tokens < 1:
        raise JobError("max_tokens must be at least 1")
    expect = raw.get("expect")
    turns = _get(raw, "turns", list, [])
    return Item(
        id=_get(raw, "id", str),
        content=_content(raw, turns),
        max_tokens=max_tokens,
        may_be_empty=expect == "empty",
        quality=_get(raw, "quality", bool, False),
        expected=_get(expect, "contains", str) if isinstance(expect, dict) else None,
        turn=1 if turns else None,
        follow_ups=tuple(turns[1:]),
    )


def _content(raw: Mapping[str, Any], turns: List[Any]) -> Mapping[str, Any]:
    """What is sent: of a conversation the first turn."""
    content = {name: raw[name] for name in ("prompt", "messages", "inputs", "turns") if raw.get(name) is not None}
    if len(content) != 1:
        raise JobError('{!r} needs one of "prompt", "messages", "turns" and "inputs"'.format(raw.get("id")))
    if not turns:
        (name,) = content
        _get(content, name, str if name == "prompt" else list)
        return content
    if not all(isinstance(turn, str) for turn in turns):
        raise JobError("a turn of {!r} is no text".format(raw.get("id")))
    system = _get(raw, "system", str, None)
    opening = [] if system is None else [{"role": "system", "content": system}]
    return {"messages": [*opening, {"role": "user", "content": turns[0]}]}


def _levels(raw: Mapping[str, Any]) -> List[Level]:
    levels = [_level(member) for member in _get(raw, "levels", list)]
    names = [level.name for level in levels]
    if not levels or len(set(names)) != len(names) or WARMUP in names:
        raise JobError('levels need different names, and none may be called "{}"'.format(WARMUP))
    warmup = _get(raw, "warmup", dict, {})
    if warmup:
        # As many streams at once as the widest level has, unless the job says how many; two requests for each, or more.
        widest = max(level.streams or 1 for level in levels)
        levels.insert(0, _level({"streams": widest, **warmup, "name": WARMUP}))
    return levels


def _level(raw: Any) -> Level:
    if not isinstance(raw, dict):
        raise JobError("a level is not an object")
    name, streams = _get(raw, "name", str), _get(raw, "streams", int, None)
    seconds = None if raw.get("seconds") is None else _positive(raw, "seconds")
    requests = _get(raw, "requests", int, None)
    if requests is not None and not 1 <= requests <= MOST_REQUESTS:
        raise JobError('level "{}" needs from 1 to {} requests'.format(name, MOST_REQUESTS))
    if streams is None:
        return _open_level(raw, Level(name, None, seconds, requests))
    if streams < 1 or (seconds is None and requests is None) or "arrivals" in raw:
        raise JobError('level "{}" needs at least one stream, and seconds or requests'.format(name))
    return Level(name, streams, seconds, requests, _enough(raw, name, timed=seconds is not None and requests is None))


def _enough(raw: Mapping[str, Any], name: str, *, timed: bool) -> Optional[Enough]:
    given = _get(raw, "enough", dict, None)
    if given is None:
        return None
    if not timed:
        raise JobError('level "{}" lasts for no time that precise figures could shorten: leave enough out'.format(name))
    try:
        return enough(given)
    except ValueError as error:
        raise JobError('when level "{}" may end: {}'.format(name, error)) from error


def _open_level(raw: Mapping[str, Any], level: Level) -> Level:
    if _get(raw, "arrivals", str, None) != POISSON:
        raise JobError('level "{}" needs streams, or arrivals: the only ones are "{}"'.format(level.name, POISSON))
    if "enough" in raw:
        raise JobError('level "{}" is open: the beginning of its schedule is another load'.format(level.name))
    if level.seconds is None or level.requests is None:
        raise JobError('level "{}" is open and needs seconds and requests'.format(level.name))
    return level
