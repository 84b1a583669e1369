"""The gate of an instance behind a balancer: a lease on its upstream, the dead-man armed, then the switch, and back.

Every time that an instance is out has a lease, a snapshot and a dead-man of its own on the balancer's host. Whoever
dies, the dead-man puts the member back as soon as it answers there, and never before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl import traffic
from changectl.core.errors import Locked
from changectl.core.history.events import DRAIN, LEASE, UNDRAIN, intent, outcome
from changectl.core.history.out_of_service import left_out
from changectl.core.lease import outliving
from changectl.traffic import Traffic
from changectl.workflow.before_out import edit_out
from changectl.workflow.emptied import prove_empty
from changectl.workflow.gate import Gate, OpenGate
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.post import Post, open_post
from changectl.workflow.recorder import Recorder
from changectl.workflow.switch import Switch
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools


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
            self._take(post, lease)
            data = self._edit(post)
            if data is None:
                return
            self._lease = lease
            self._take_out(lease, *data)
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
                self._switch.put_back(lease)
            except BaseException:
                self._unsure(lease)
                raise
            self._free(lease)
        self.tools.reporter.note(f"{self.target.name}: in service again at {post.address.name}")

    def _take(self, post: Post, lease: HostLease) -> None:
        """Take a new lease, also from an earlier time of this very run whose release got lost. Raises Locked."""
        try:
            lease.take()
        except Locked:
            events = self.tools.journal.events(self.recorder.run)
            asked = [event.body for event in events if event.kind == intent(LEASE) and event.body["host"] == post.name]
            own = [str(body["folder"]) for body in asked if body["folder"] != lease.run]
            if not own or post.ask("standing", {"run": own[-1]}).get("armed"):
                raise
            earlier = self._held(post, own[-1])
            earlier.take()  # refused where it is somebody else's
            earlier.give_back()
            lease.take()

    def _unsure(self, lease: HostLease) -> None:
        """It may serve by now: whoever stops it next has to look first."""
        self._adopted = True
        if lease.armed is False:  # the balancer's host has it on record that it is back, and only the record here fails
            lease.give_back()
            self._lease = self.out_since = None

    def _edit(self, post: Post) -> tuple[bytes, bytes] | None:
        fit = not (self.insisting or self.sick)
        found = edit_out(post, self.target, self.way, self.tools, slots=self.slots, noticed=self.spared, fit=fit)
        if found is None:
            text = f"{self.target.name} is out of service already ({self.way.file} says so): it stays as it is"
            self.tools.reporter.note(text)
        return found

    def _prove(self, post: Post) -> None:
        prove_empty(post, self.target, self.way, self.recorder, self.tools, cut=self.insisting or self.sick)

    def _take_out(self, lease: HostLease, before: bytes, after: bytes) -> None:
        self._switch.take_out(lease, before, after)
        self.out_since = self.tools.clock.monotonic()

    @property
    def _switch(self) -> Switch:
        return Switch(self._open(), self.target, self.way, self.recorder, self.tools)

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
        """Take over what this or an earlier run left out; where the dead-man put it back, nothing is left to do."""
        folder = self._left_out()
        if folder is None:
            return
        post = self._open()
        lease = self._held(post, folder)
        lease.armed = None
        lease.take()
        try:
            standing = lease.target.ask("standing", {"run": folder})
        except BaseException:
            lease.stop_beating()  # nobody knows of this lease any more: let it run out, so that the dead-man may act
            raise
        if standing.get("armed"):
            lease.armed = True if standing.get("keeper_running") else None
            self._lease, self._adopted, self.out_since = lease, True, self.tools.clock.monotonic()
            return
        lease.armed = False
        lease.give_back()
        self._settled(folder, _how_back(post.address.name, standing))

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
            self._take_out(lease, b"", b"")
            self._prove(post)
        elif self.way.taken_out(post.file(self.way.file).data) is not None:
            with self.tools.interrupts.shielded():
                lease.disarm("reverted")
                self._settled(lease.run, "it serves already")
                self._free(lease)
        self._adopted = False

    def _free(self, lease: HostLease) -> None:
        """Its time out of service is over, on record at the balancer's host."""
        self._switch.forget(lease)
        lease.give_back()
        # Before a signal is raised: who goes back from here has to know that it serves.
        self._lease = self.out_since = None

    def _left_out(self) -> str | None:
        """The folder on the balancer of the time that it is out by the record, whichever run took it out."""
        target = self.target
        own = left_out(self.tools.journal.events(self.recorder.run)).get(target.name)
        found = own or self.tools.memory.out_of_service(target.service.service).get(target.name)
        here = (self.way.host or target.address.name, self.way.place)
        return found.folder if found is not None and (found.balancer, found.upstream) == here else None

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


def _how_back(balancer: str, standing: Mapping[str, Any]) -> str:
    """How it came back into service, by what the balancer's host has on record of a time that is over."""
    fired, decided = standing.get("fired") or {}, standing.get("disarmed") or {}
    if fired:
        who = "by hand" if fired.get("by") == "hand" else "by itself"
        return f"{balancer} put it back into service {who} at {fired.get('at')}"
    if decided.get("outcome") == "reverted":
        return f"the run itself had put it back into service, at {decided.get('at')}"
    if decided or standing.get("touched"):
        return f"{balancer} was told to switch, and nothing of that is armed there any more"
    return "nothing was switched"


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
