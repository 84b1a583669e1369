"""The gate of an instance behind a balancer: a lease on its upstream, the dead-man armed, then the switch, and back.

Every time that an instance is out has a lease, a snapshot and a dead-man of its own on the balancer's host. Whoever
dies, the dead-man puts the member back as soon as it answers there, and never before.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl import traffic
from changectl.core.digest import sha256
from changectl.core.errors import HostCallError, Refused
from changectl.core.history_events import DRAIN, UNDRAIN, intent, outcome
from changectl.core.lease import outliving
from changectl.core.out_of_service import left_out
from changectl.traffic import Traffic
from changectl.workflow.emptied import prove_empty
from changectl.workflow.gate import Gate, OpenGate
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.post import Post, health, open_post, wrong_answer
from changectl.workflow.recorder import Recorder
from changectl.workflow.spared import require_spare
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

PLAY_WITHIN = 300.0  # seconds
USUAL_DRAIN = 60.0  # seconds that requests get to end, where the service does not say
LOOK_EVERY = 0.5  # seconds
TRIES = 2  # times that an upstream is taken over from its dead-man


@dataclass
class Balancer:
    """Takes one instance out of service and puts it back.

    Attributes:
        target: the instance.
        way: how it is switched.
        recorder: the journal of the run that acts.
        tools: the ports.
        step_name: the run folder's name on the instance's host, from which those on the balancer's are made.
        spared: whether the plan allows that users notice it, so that nobody asks who serves meanwhile.
        slots: requests that the instance serves at a time; None: not known.
        sick: whether it was found sick, so that no good answer of it is asked for before it is taken out.
        out_since: since when it is out, by the monotonic clock.
    """

    target: Target
    way: Traffic
    recorder: Recorder
    tools: Tools
    step_name: str
    spared: bool = False
    slots: float | None = None
    sick: bool = False
    out_since: float | None = None
    controls = True
    insisting: bool = False
    _post: Post | None = None
    _lease: HostLease | None = None
    _adopted: bool = False  # taken over from whoever died, or not put back for sure, and not looked at since

    def insist(self) -> None:
        """From here on the way back counts."""
        self.insisting, self.recorder = True, self.recorder.insisting()
        if self._lease is not None:
            self._lease.recorder, self._lease.silence_ends = self.recorder, False

    @property
    def leases(self) -> Sequence[HostLease]:
        """The one of the time that it is out now."""
        return () if self._lease is None else (self._lease,)

    def check(self) -> None:
        """Everything that is looked at before it is taken out, without taking it out; see `Gate.check`."""
        if self._lease is None:
            self._edit(self._open())

    def out(self) -> None:
        """Take it out, and prove that nothing is under way there any more; see `Gate.out`."""
        if self._lease is not None and self._lease.over is not None:
            self._lease.stop_beating()
            self._lease = self.out_since = None  # its dead-man may have put it back: the host knows
        if self._lease is None:
            self._adopt()
        if self._lease is not None:
            self._again(self._open(), self._lease)
        if self._lease is not None:
            return
        post = self._open()
        lease = self._held(post, f"{self.step_name}.{self._times() + 1}")
        try:
            lease.take()
            data = self._edit(post)
            if data is None:
                return
            self._lease = lease
            self._take_out(post, lease, *data)
            self._prove(post)
        except (Exception, Interrupted):
            self._undo()
            raise
        finally:
            if self._lease is None:
                lease.give_back()

    def back(self) -> None:
        """Put it back once the balancer's host gets its answers; see `Gate.back`."""
        if self._lease is None:
            self._adopt()
        if self._lease is None:
            return
        post, lease = self._open(), self._lease
        with self.tools.interrupts.shielded():
            try:
                self._put_back(post, lease)
            except BaseException:
                self._unsure(lease)
                raise
            self._free(post, lease)
        self.tools.reporter.note(f"{self.target.name}: in service again at {post.address.name}")

    def _unsure(self, lease: HostLease) -> None:
        """It may serve by now: whoever stops it next has to look first."""
        self._adopted = True
        if lease.armed is False:  # the balancer's host has it on record that it is back, and only the record here fails
            lease.give_back()
            self._lease = self.out_since = None

    def _edit(self, post: Post) -> tuple[bytes, bytes] | None:
        """The balancer's file before and after; None: the instance is out already, and not by us."""
        if self.way.file is None:
            if not self.spared:
                require_spare(post, self.target, self.way, b"", self.slots, self.tools)
            self._require_fit(post)
            return b"", b""
        seen = post.file(self.way.file)
        after = self.way.taken_out(seen.data)
        if after is None:
            text = f"{self.target.name} is out of service already ({self.way.file} says so): it stays as it is"
            self.tools.reporter.note(text)
            return None
        if not self.spared:
            require_spare(post, self.target, self.way, seen.data, self.slots, self.tools)
        self._require_fit(post)
        return seen.data, after

    def _require_fit(self, post: Post) -> None:
        """What decides whether it may go back has to hold now, or it would stay out for good."""
        wrong = "" if self.insisting or self.sick else wrong_answer(post, self.target, self.way.member)
        if wrong:
            text = f"{self.target.name} could not be put back into service: {post.address.name} asks it, and {wrong}"
            raise Refused(f"{text}; it has to answer that host, without a token", reason="member_sick")

    def _prove(self, post: Post) -> None:
        prove_empty(post, self.target, self.way, self.recorder, self.tools, cut=self.insisting)

    def _take_out(self, post: Post, lease: HostLease, before: bytes, after: bytes) -> None:
        run, path = self._run(lease), self.way.file
        body = {"host": self.target.name, "balancer": post.address.name, "upstream": post.upstream,
                "member": self.way.member, "folder": lease.run, "path": path, "before_sha": sha256(before),
                "after_sha": sha256(after)}  # fmt: skip
        with self.tools.interrupts.shielded(), self.recorder.acting(DRAIN, body) as done:
            post.ask("capture", {**run, "files": [path] if path else [], "manager": None})
            variables: dict[str, Any] = {}
            if path:
                self._stage(post, run, after)
                variables["changectl_write"] = {"path": path, "expect": sha256(before), "staged": sha256(after)}
            wanted = self._traffic(post)
            with lease.arming({"traffic": wanted, "only": [path] if path else []}) as arming:
                arming.answers = self._play(post, lease, "take_out", wanted, {**variables, **arming.variables})
            done.update(body, answers=[_short(answer) for answer in arming.answers])
        self.out_since = self.tools.clock.monotonic()

    def _put_back(self, post: Post, lease: HostLease) -> None:
        """The dead-man may have been faster, or somebody may have edited the very line: both are settled here."""
        write: dict[str, Any] = {}
        for left in reversed(range(TRIES + 1)):
            body = {"host": self.target.name, "balancer": post.address.name, "upstream": post.upstream,
                    "folder": lease.run, "path": self.way.file}  # fmt: skip
            try:
                with self.recorder.acting(UNDRAIN, body) as done:
                    answers = self._play(post, lease, "put_back", self._traffic(post), write)
                    lease.disarm("reverted")
                    done.update(body, answers=[_short(answer) for answer in answers])
                return
            except HostCallError as error:
                if not left:
                    raise
                if error.reason == "changed_by_other" and self.way.file and not write:
                    write = self._mended(post, lease)
                elif error.reason in ("lease_lost", "no_lease", "stale_generation"):
                    lease.take()
                else:
                    raise

    def _mended(self, post: Post, lease: HostLease) -> dict[str, Any]:
        """Our word alone, out of a line that somebody else changed meanwhile."""
        path = str(self.way.file)
        found = post.ask("balancer", {"file": path})["file"]
        data = self.way.put_back(base64.b64decode(found["content"]))
        self._stage(post, self._run(lease), data)
        return {"changectl_write": {"path": path, "expect": found["sha256"], "staged": sha256(data)}}

    def _undo(self) -> None:
        """It was not taken out as asked: whatever of it was done is taken back; the dead-man does what fails here."""
        if self._lease is None:
            return
        if self._lease.armed is False:
            self._settled(self._lease.run, "nothing was switched")
            self._lease = None
            return
        try:
            with self.tools.interrupts.ignored():
                self.back()
        except Exception as error:  # noqa: BLE001 - the first error is the one to tell
            self.tools.reporter.note(f"{self.target.name} is still out of service: {error}")

    def _adopt(self) -> None:
        """Take over what an earlier part of this run left out; where the dead-man put it back, nothing is left."""
        folder = self._left_out()
        if folder is None:
            return
        lease = self._held(self._open(), folder)
        lease.armed = None
        lease.take()
        standing = lease.target.ask("standing", {"run": folder})
        if standing.get("armed"):
            lease.armed = True if standing.get("keeper_running") else None
            self._lease, self._adopted, self.out_since = lease, True, self.tools.clock.monotonic()
            return
        lease.armed = False
        lease.give_back()
        self._settled(folder, "the balancer's host put it back")

    def _settled(self, folder: str, how: str) -> None:
        self.recorder.note(outcome(UNDRAIN), {"host": self.target.name, "folder": folder, "ok": True, "how": how})

    def _again(self, post: Post, lease: HostLease) -> None:
        """What is not known to be out may be in service: then that time is over, and it is taken out anew.

        With a snapshot of its own: the old one is of a file that was written since. What a command switches cannot be
        looked at, and is switched once more.
        """
        if not self._adopted:
            return
        if self.way.file is None:
            self._take_out(post, lease, b"", b"")
            self._prove(post)
        elif self.way.taken_out(post.file(self.way.file).data) is not None:
            with self.tools.interrupts.shielded():
                lease.disarm("reverted")
                self._settled(lease.run, "it serves already")
                self._free(post, lease)
        self._adopted = False

    def _free(self, post: Post, lease: HostLease) -> None:
        """Its time out of service is over, on record at the balancer's host."""
        with contextlib.suppress(Exception):  # what is left behind lies in a folder of ours
            post.ask("forget", self._run(lease))
        lease.give_back()
        # Before a signal is raised: who goes back from here has to know that it serves.
        self._lease = self.out_since = None

    def _left_out(self) -> str | None:
        found = left_out(self.tools.journal.events(self.recorder.run)).get(self.target.name)
        return None if found is None else found.folder

    def _times(self) -> int:
        """How often this run took an instance out of service already."""
        return sum(event.kind == intent(DRAIN) for event in self.tools.journal.events(self.recorder.run))

    def _open(self) -> Post:
        if self._post is None:
            self._post = open_post(self.target, self.way, self.tools)
        return self._post

    def _held(self, post: Post, folder: str) -> HostLease:
        seconds = outliving(lease_seconds(self.target, self.tools))
        return HostLease(post, self.recorder, self.tools, folder, seconds, silence_ends=not self.insisting)

    def _traffic(self, post: Post) -> dict[str, Any]:
        return {"member": self.way.member, "way": dict(self.way.way()),
                "health": health(post, self.target, self.way.member)}  # fmt: skip

    def _run(self, lease: HostLease) -> dict[str, Any]:
        return {"run": lease.run, "generation": lease.generation}

    def _stage(self, post: Post, run: Mapping[str, Any], data: bytes) -> None:
        args = {**run, "sha256": sha256(data), "content": base64.b64encode(data).decode()}
        post.ask("stage", args)

    def _play(
        self, post: Post, lease: HostLease, call: str, wanted: Mapping[str, Any], more: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        given = {
            "changectl_call": call,
            "changectl_upstream": post.upstream,
            "changectl_run": lease.run,
            "changectl_generation": lease.generation,
            "changectl_traffic": dict(wanted),
            **more,
        }
        return list(self.tools.playbooks.run("traffic", post.address, given, timeout=PLAY_WITHIN).answers)


def gate_of(
    target: Target,
    recorder: Recorder,
    tools: Tools,
    step_name: str,
    *,
    spared: bool = False,
    slots: float | None = None,
    sick: bool = False,
) -> Gate:
    """The gate of an instance, as its service file says; see `Balancer` for the arguments."""
    way = traffic.load(target.service.traffic)
    if not way.controls:
        return OpenGate()
    return Balancer(target, way, recorder, tools, step_name, spared, slots, sick)


def _short(answer: Mapping[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool)
    return {key: value for key, value in answer.items() if isinstance(value, plain) or key in ("files", "workers")}
