"""Where the load comes from: the host that the service names as its caller, or else the instance's own host.

A caller that is another host is never kept for longer than one measurement: its door is opened for it and closed after
it, so that between phases nothing of ours runs there. When it is lost the measurement is; nothing else is asked to send
in its place.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from changectl.core.errors import ContactLost, HostCallError, Refused
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.records import NO_WAY
from changectl.core.observed import Hello
from changectl.core.ports import Door, HostAddress, Progress
from changectl.workflow.not_kept import NotKept
from changectl.workflow.target import CALL_TIMEOUT, Target
from changectl.workflow.tools import Tools

CALLER_LOST = "caller_lost"
SILENCE = 15.0  # seconds without a sign of life from us after which a load ends by itself
CUT = 5.0  # seconds of silence that, with requests which found no way, are a link that was cut for a while


class CallerLost(NotKept):
    """The host that sends the load cannot be reached; `why` says how that showed."""

    def __init__(self, target: str, caller: str, why: str) -> None:
        text = f"{target}: the load comes from {caller}, and that host is lost: {why}. It is measured from nowhere else"
        super().__init__(CALLER_LOST, f"{text}; see `changectl doctor {caller}`, then apply the plan again")
        self.why = why


@dataclass(frozen=True)
class Sent:
    """What came of a load: raw records (JSON lines), what the generator says of itself, and why it failed if it did."""

    records: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True)
class Caller:
    """The host that sends the load to an instance, with a door to it."""

    name: str
    target: Target
    own: bool  # whether it is the instance's own host
    door: Door

    def send(self, generator: bytes, job: Mapping[str, Any], run: str, timeout: float, progress: Progress) -> Sent:
        """Run the load generator there; it ends with this call, or by itself when nobody listens any more.

        Args:
            generator: its program.
            job: what it sends; holds the token.
            run: whose it is, for a person who meets it there.
            timeout: seconds that it may go without saying how far it is.
            progress: told how far it is.

        Raises:
            CallerLost: the host is lost, and it is not the instance's own.
            ContactLost, HostCallError: as of every host call. A generator that failed is none: `failure` says why.
        """
        args = {"run": run, "generator": base64.b64encode(generator).decode(), "job": dict(job)}
        try:
            answer = self._ask("measure", args, timeout=timeout, progress=progress, silence=SILENCE)
        except HostCallError as error:
            if error.reason != "generator_failed":
                raise
            return Sent(failure=str(error))
        records = zlib.decompress(base64.b64decode(answer["records"])).decode()
        self._require_link(float(answer.get("silent") or 0.0), records)
        return Sent(records, dict(answer.get("summary") or {}))

    def _require_link(self, silent: float, records: str) -> None:
        """A link that came back in time has spoilt the figures all the same, and that is nothing against a change."""
        if self.own or silent < CUT:
            return
        failed = sum(record.cls in NO_WAY for record in parse_records(records))
        if failed:
            text = f"it was not heard for {silent:.0f} s, and {failed} of its requests found no way to the service"
            raise CallerLost(self.target.name, self.name, text)

    def hello(self) -> Hello:
        """Who the host is."""
        return Hello.read(self._ask("hello", {}))

    def conditions(self, sent: Sent) -> dict[str, Any]:
        """What about the caller has to be equal in all phases; of an own host the rest is among the host's facts."""
        hello = self.hello()
        own = ", the instance's own host" if self.own else ""
        who = None if hello.hostname is None else f"{self.name} ({hello.hostname}{own})"
        facts: dict[str, Any] = {"caller": who, "caller_address": sent.summary.get("source")}
        if not self.own:
            host = self._ask("host", {"paths": []})
            cpus = json.dumps(host["cpus"], sort_keys=True) if host.get("cpus") else None
            facts["caller_host"] = {
                "kernel": host.get("kernel"), "cpus": cpus, "boot": hello.boot_id, "python": hello.python,
            }  # fmt: skip
        return facts

    def _ask(self, call: str, args: Mapping[str, Any], *, timeout: float = CALL_TIMEOUT, **more: Any) -> dict[str, Any]:
        if self.own:
            return self.door.call(call, args, timeout=timeout, **more)
        with _lost(self.target, self.name):
            return self.door.call(call, args, timeout=timeout, **more)


@contextmanager
def calling(target: Target, host: HostAddress | None, tools: Tools) -> Iterator[Caller]:
    """The host that sends the load to an instance, for one measurement.

    Args:
        target: the instance.
        host: the service's caller; None: it names none.
        tools: the ports.

    Raises:
        CallerLost: it cannot be reached, or has no Python that our programs run on.
    """
    if host is None or host.name == target.address.name:
        yield Caller(target.address.name, target, own=True, door=target.door)
        return
    tools.secrets.learn_host(host.variables, None)
    with _lost(target, host.name):
        door = tools.doors.open(host)
    try:
        yield Caller(host.name, target, own=False, door=door)
    finally:
        with suppress(Exception):  # what goes wrong there changes nothing any more
            door.close()


@contextmanager
def _lost(target: Target, caller: str) -> Iterator[None]:
    try:
        yield
    except (ContactLost, Refused) as error:
        raise CallerLost(target.name, caller, str(error)) from error
