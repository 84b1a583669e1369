"""From one prompt to one record: connect, send, wait, classify. Nothing is ever tried twice."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from time import perf_counter_ns
from typing import Any, Dict, List, Optional, Tuple

import h11

from changectl import loads
from changectl.adapters.loadgen.answer import Answer
from changectl.adapters.loadgen.exchange import Exchange
from changectl.adapters.loadgen.job import Item, Job, Level
from changectl.adapters.loadgen.salt import salt, salted

# What the sender's own host refuses: no file descriptor, no port, no memory. It says nothing about the service.
_OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)


class Client:
    """Sends the job's prompts. `addresses` were looked up once: name service is not part of what is measured."""

    def __init__(self, job: Job, address: str, start_ns: int, port: Optional[int] = None) -> None:
        self._job = job
        self._address = address
        self._port = job.endpoint.port if port is None else port
        self._protocol = loads.load(job.protocol)
        self._tls = _tls(job)
        self._start_ns = start_ns
        self._open: List[Exchange] = []
        self.stopping = False

    def stop(self) -> None:
        """End every request under way; each is recorded as aborted by the client."""
        self.stopping = True
        for exchange in list(self._open):
            exchange.abort()

    async def record(
        self, level: Level, item: Item, place: Dict[str, Any], t_planned: int
    ) -> Tuple[Dict[str, Any], str]:
        """Send one prompt and say what became of it, in nanoseconds since the phase started, and what it said."""
        t_start = perf_counter_ns()
        answer = Answer(self._protocol, item)
        request, body = self._request(level, item, place["round"])
        exchange = Exchange(request, body, answer)
        deadline = asyncio.get_running_loop().time() + self._job.deadline - (t_start - t_planned) / 1e9
        failure = await self._connect(exchange, deadline)
        if failure is None:
            self._open.append(exchange)
            exchange.stop_at(deadline)
            ended = await exchange.ended
            self._open.remove(exchange)
            outcome = answer.outcome(ended)
        else:
            outcome, answer.error = failure
        t_end = exchange.t_end if exchange.t_end is not None else perf_counter_ns()
        record = answer.fields()
        record.update(place, level=level.name, prompt=item.name, turn=item.turn, cls=outcome)
        record.update(t_planned=t_planned, t_start=t_start, t_sent=exchange.t_sent, t_end=t_end)
        return self._relative(record), answer.said

    def not_sent(
        self, level: Level, item: Item, place: Dict[str, int], t_planned: int, why: Optional[str]
    ) -> Dict[str, Any]:
        """The record of a request that was due and could not be sent, for this reason; None: all has to stop."""
        record = Answer(self._protocol, item).fields()
        record.update(place, level=level.name, prompt=item.name, turn=item.turn, t_planned=t_planned)
        record.update(dict.fromkeys(("t_start", "t_sent", "t_end")), error=why)
        record["cls"] = "client_abort" if why is None else "not_sent"
        return self._relative(record)

    def _request(self, level: Level, item: Item, round_number: int) -> Tuple[h11.Request, bytes]:
        job = self._job
        content: Any = item.content
        if not item.quality:
            content = salted(content, salt(job.salt, level.name, round_number, item.id))
        settings = {"model": job.model, "max_tokens": item.max_tokens, "seed": job.seed, "body": job.body}
        settings["include_usage"] = job.include_usage
        method, path, headers, body = self._protocol.build_request(content, settings)
        fixed = [("Host", job.endpoint.authority), ("Content-Length", str(len(body))), ("Connection", "close")]
        all_headers = fixed + headers + job.headers
        return h11.Request(method=method, target=job.endpoint.prefix + path, headers=all_headers), body

    async def _connect(self, exchange: Exchange, deadline: float) -> Optional[Tuple[str, str]]:
        """Connect and send; the class of failure and its text when there is no connection."""
        loop = asyncio.get_running_loop()
        endpoint = self._job.endpoint
        name = endpoint.host if endpoint.tls else None
        timeout = min(self._job.connect_timeout, deadline - loop.time())
        connecting = loop.create_connection(
            lambda: exchange, self._address, self._port, ssl=self._tls, server_hostname=name
        )
        try:
            await asyncio.wait_for(connecting, timeout)
        except asyncio.TimeoutError:
            exchange.abort()
            return "connect_timeout", "no connection within {:g} s".format(timeout)
        except ConnectionRefusedError as error:
            return "connect_refused", error.strerror or "connection refused"
        except OSError as error:  # unreachable, reset, TLS
            return "client_limit" if error.errno in _OWN_LIMITS else "connect_error", str(error)
        if self.stopping:
            exchange.abort()
        return None

    def _relative(self, record: Dict[str, Any]) -> Dict[str, Any]:
        for name, value in record.items():
            if name.startswith("t_") and value is not None:
                record[name] = value - self._start_ns
        if record["error"]:
            record["error"] = self._redacted(record["error"])
        return record

    def _redacted(self, text: str) -> str:
        """Servers echo what they were sent; a token must not reach the records that way."""
        for _, value in self._job.headers:
            for secret in [value, *value.split()]:
                if len(secret) >= 4:
                    text = text.replace(secret, "***")
        return text[:200]


def _tls(job: Job) -> Optional[ssl.SSLContext]:
    if not job.endpoint.tls:
        return None
    context = ssl.create_default_context(cafile=job.tls_ca)
    if not job.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def look_up(job: Job) -> str:
    """The address to use for the whole job: the first that takes a connection, or else the first there is.

    Raises:
        OSError: the name is not known.
    """
    loop = asyncio.get_running_loop()
    endpoint = job.endpoint
    found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses if len(addresses) > 1 else []:
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(address, endpoint.port), job.connect_timeout)
        except (OSError, asyncio.TimeoutError):
            continue
        writer.close()
        return address
    return addresses[0]
