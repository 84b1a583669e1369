"""What is done on a balancer's host to take one instance out of service and to put it back: journaled, by plays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from changectl.core.digest import sha256
from changectl.core.errors import HostCallError
from changectl.core.history.events import DRAIN, UNDRAIN
from changectl.traffic import Traffic
from changectl.workflow.lease import HostLease
from changectl.workflow.post import Post, health
from changectl.workflow.recorder import Recorder
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

PLAY_WITHIN = 300.0  # seconds
TRIES = 2  # times that an upstream is taken over from its dead-man
SHUT_OUT = ("lease_lost", "no_lease", "stale_generation")  # a host's words for: its dead-man was faster


@dataclass(frozen=True)
class Switch:
    """The acts on one balancer for one instance; whoever calls them holds the lease.

    Attributes:
        post: the balancer.
        target: the instance.
        way: how it is switched.
        recorder: the journal of the run that acts.
        tools: the ports.
    """

    post: Post
    target: Target
    way: Traffic
    recorder: Recorder
    tools: Tools

    def take_out(self, lease: HostLease, before: bytes, after: bytes) -> None:
        """Save, arm, and switch; the balancer's file goes from the one to the other, if there is one.

        Raises:
            HostCallError: it was not done, or not armed; the lease says which.
        """
        run, path = _run(lease), self.way.file
        body = {**self._body(lease), "member": self.way.member, "before_sha": sha256(before),
                "after_sha": sha256(after)}  # fmt: skip
        with self.tools.interrupts.shielded(), self.recorder.acting(DRAIN, body) as done:
            self.post.ask("capture", {**run, "files": [path] if path else [], "manager": None})
            variables: dict[str, Any] = {}
            if path:
                self._stage(run, after)
                variables["changectl_write"] = {"path": path, "expect": sha256(before), "staged": sha256(after)}
            wanted = self._traffic()
            with lease.arming({"traffic": wanted, "only": [path] if path else []}) as arming:
                arming.answers = self._play(lease, "take_out", wanted, {**variables, **arming.variables})
            done.update(body, answers=[_short(answer) for answer in arming.answers])

    def put_back(self, lease: HostLease) -> None:
        """Switch back, and disarm; a dead-man that was faster, or an edit of the very line meanwhile, is settled here.

        Raises:
            HostCallError: reason `member_sick`: it does not answer there, and stays out; or it was not done.
        """
        write: dict[str, Any] = {}
        for left in reversed(range(TRIES + 1)):
            body = self._body(lease)
            try:
                with self.recorder.acting(UNDRAIN, body) as done:
                    answers = self._play(lease, "put_back", self._traffic(), write)
                    lease.disarm("reverted")
                    done.update(body, answers=[_short(answer) for answer in answers])
                return
            except HostCallError as error:
                if not left:
                    raise
                if error.reason == "changed_by_other" and self.way.file and not write:
                    write = self._mended(lease)
                elif error.reason in SHUT_OUT:
                    lease.take()
                else:
                    raise

    def forget(self, lease: HostLease) -> None:
        """Take away what was saved there; what is left behind lies in a folder of ours."""
        with suppress(Exception):
            self.post.ask("forget", _run(lease))

    def _body(self, lease: HostLease) -> dict[str, Any]:
        return {"host": self.target.name, "balancer": self.post.address.name, "upstream": self.post.upstream,
                "folder": lease.run, "path": self.way.file}  # fmt: skip

    def _mended(self, lease: HostLease) -> dict[str, Any]:
        """Our word alone, out of a line that somebody else changed meanwhile."""
        path = str(self.way.file)
        found = self.post.ask("balancer", {"file": path})["file"]
        data = self.way.put_back(base64.b64decode(found["content"]))
        self._stage(_run(lease), data)
        return {"changectl_write": {"path": path, "expect": found["sha256"], "staged": sha256(data)}}

    def _traffic(self) -> dict[str, Any]:
        return {"member": self.way.member, "way": dict(self.way.way()),
                "health": health(self.post, self.target, self.way.member)}  # fmt: skip

    def _stage(self, run: Mapping[str, Any], data: bytes) -> None:
        self.post.ask("stage", {**run, "sha256": sha256(data), "content": base64.b64encode(data).decode()})

    def _play(
        self, lease: HostLease, call: str, wanted: Mapping[str, Any], more: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        given = {
            "changectl_call": call,
            "changectl_upstream": self.post.upstream,
            "changectl_run": lease.run,
            "changectl_generation": lease.generation,
            "changectl_traffic": dict(wanted),
            **more,
        }
        return list(self.tools.playbooks.run("traffic", self.post.address, given, timeout=PLAY_WITHIN).answers)


def _run(lease: HostLease) -> dict[str, Any]:
    return {"run": lease.run, "generation": lease.generation}


def _short(answer: Mapping[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool)
    return {key: value for key, value in answer.items() if isinstance(value, plain) or key in ("files", "workers")}
