"""The host that spreads requests over instances, as far as one upstream is concerned."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from changectl.core.declared.traffic_spec import OF_UPSTREAM
from changectl.core.engine import Pages, ProbeRequest, pages_from
from changectl.core.errors import Refused
from changectl.core.ports import Door, HostAddress
from changectl.traffic import Traffic
from changectl.workflow.target import CALL_TIMEOUT, Target
from changectl.workflow.tools import Tools

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Post:
    """One upstream on its balancer; a lease is taken on this, not on the whole host."""

    address: HostAddress
    upstream: str
    door: Door

    @property
    def name(self) -> str:
        """Not the host's own name: other records of that host are about other things."""
        return f"{self.address.name}{OF_UPSTREAM}{self.upstream})"

    @property
    def promise(self) -> str:
        """What its dead-man does."""
        return "puts the instance back into service once it answers"

    def with_state(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The host program keeps a folder for each upstream."""
        return {**args, "upstream": self.upstream}

    def ask(self, call: str, args: Mapping[str, Any], *, timeout: float = CALL_TIMEOUT) -> dict[str, Any]:
        """One host call through the door."""
        return self.door.call(call, self.with_state(args), timeout=timeout)

    def file(self, path: str) -> Seen:
        """What the balancer is told now.

        Raises:
            Refused: it would not take it, does not read it, or somebody edited it and has not reloaded it.
        """
        found = self.ask("balancer", {"file": path})
        if found.get("problem"):
            raise Refused(f"{self.address.name}: nginx would not take its configuration: {found['problem']}",
                          reason="nginx_refuses")  # fmt: skip
        if not found.get("reads"):
            raise Refused(f"{self.address.name}: nginx does not read {path}: name the file that is part of its "
                          "configuration", reason="not_read_by_nginx")  # fmt: skip
        if found.get("pending"):
            pending = ", ".join(map(str, found["pending"]))
            raise Refused(f"{self.address.name}: {pending} was edited and nginx has not reloaded since: a reload would "
                          "put that into force; reload or take it back first", reason="pending_reload")  # fmt: skip
        return Seen(base64.b64decode(found["file"]["content"]), str(found["file"]["sha256"]))

    def pages(self, requests: Sequence[ProbeRequest], within: float) -> Pages:
        """Pages of a member, as the balancer's host gets them."""
        args = {"requests": [{**one.as_args(), "timeout": min(within, one.timeout)} for one in requests]}
        return pages_from(self.ask("probe", args, timeout=within * len(requests) + 10))


@dataclass(frozen=True)
class Seen:
    """The balancer's file."""

    data: bytes
    sha256: str


def open_post(target: Target, way: Traffic, tools: Tools) -> Post:
    """Open the door to the host that switches an instance. Raises Refused, ContactLost."""
    if way.host is None:
        return Post(target.address, way.place, tools.doors.open(target.address))
    address = tools.inventory.host(way.host)  # whatever --limit says: it is not what is changed
    if address is None:
        text = f"`traffic` of service {target.service.service} names {way.host}, which is no host of the inventory"
        raise Refused(f"{text}: write the name of one there, not of a group", reason="no_balancer")
    tools.secrets.learn_host(address.variables, None)
    return Post(address, way.place, tools.doors.open(address))


def seen_from(post: Post, target: Target, member: str | None) -> str:
    """The instance's base address as the balancer's host reaches it."""
    parts = urlsplit(target.endpoint)
    if member is None:
        far = post.address.name != target.address.name and (parts.hostname or "") in LOOPBACK
        host = str(target.address.variables.get("ansible_host") or target.address.name)
        member = f"{host}:{target.port}" if far else parts.netloc
    return f"{parts.scheme}://{member}{parts.path}".rstrip("/")


def health(post: Post, target: Target, member: str | None) -> list[dict[str, Any]]:
    """What a member has to answer before it goes back: its health page, and a few tokens where no secret is needed.

    Without the service's token: it would lie on the balancer's host for as long as the dead-man is armed.
    """
    base = seen_from(post, target, member)
    wanted = {"health"} if target.auth else {"health", "answer"}
    found = target.engine.probes(base, target.service.model.name, None)
    return [
        {**one.as_args(), "status": target.engine.healthy_status if one.name == "health" else 200}
        for one in found
        if one.name in wanted
    ]


def wrong_answer(post: Post, target: Target, member: str | None) -> str:
    """What a member does not answer now as it has to before it goes back; "" where all is well."""
    requests = health(post, target, member)
    seconds = sum(float(one["timeout"]) for one in requests)
    found = post.ask("probe", {"requests": requests}, timeout=seconds + 10)
    for one in requests:
        page = found.get(one["name"]) or {}
        if page.get("status") != one["status"]:
            said = page.get("error") or f"HTTP {page.get('status')}"
            return f"{one['url']} says {said}, not HTTP {one['status']}"
    return ""
