"""A run's right to act on one host, and the dead-man that restores there when the run gives no sign of life any more.

Taken before anything is read, armed with the first play that changes something, given up only with a decision that the
host itself has on record: kept, or reverted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from changectl.core.errors import ContactLost, HostCallError, Locked
from changectl.core.lease import Lease, length, whole
from changectl.core.ports import Event
from changectl.workflow.actors import acted
from changectl.workflow.recorder import Recorder
from changectl.workflow.right import Leased, Right
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.waiting import once_free

USUAL_STOP = 90.0  # seconds, systemd's own default, until the unit is read
GRACE = 5.0  # seconds after a lease that the host gets to begin
TRY_AGAIN = 1.0  # seconds between two tries to reach a host
OTHERS = ("held", "armed_by_other")  # the host's words for: somebody else has it


@dataclass
class HostLease:
    """The lease of a run on one host, and the dead-man of one of its run folders there.

    Attributes:
        target: any instance on the host, or a balancer's upstream.
        recorder: the journal of the run that acts.
        tools: the ports.
        run: the run folder on the host.
        seconds: how long the lease lasts without a sign of life.
        right: the lease itself; the same one for all instances of the run on the host.
        armed: whether the dead-man is armed; None: a play that should have armed it broke off.
        silence_ends: whether the run ends before a silent host acts: nothing else would notice its silence.
    """

    target: Leased
    recorder: Recorder
    tools: Tools
    run: str
    seconds: float
    right: Right = field(default_factory=Right)
    armed: bool | None = False
    silence_ends: bool = False
    reboot_safe: bool | None = None
    _watched: bool = False
    _collected: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def held(self) -> Lease | None:
        """The lease, once it was taken."""
        return self.right.held

    @property
    def generation(self) -> int:
        """The number under which this run may act on the host; 0 before the lease was taken."""
        return self.held.generation if self.held is not None else 0

    @property
    def lost(self) -> str | None:
        """Why the lease is ours no more, as far as is known."""
        return self.right.beating.lost if self.right.beating is not None else None

    def take(self) -> None:
        """Take the lease, above every generation that the host has seen of this run, and keep it alive.

        Raises:
            Locked: another run has the host; run and owner are named.
        """
        body = {"host": self.target.name, "folder": self.run, "seconds": self.seconds}
        with self.recorder.acting("lease", body) as outcome:
            wanted, answer = once_free(self._ask_for, self.tools)
            outcome.update(host=self.target.name, generation=wanted.generation, nonce=wanted.nonce,
                           taken_over=answer.get("taken_over"))  # fmt: skip
        self._hold(wanted)

    def _collect(self, standing: Mapping[str, Any]) -> None:
        """What the dead-man, the boot or a person did there meanwhile goes into the record, once."""
        fired = standing.get("fired")
        if isinstance(fired, Mapping) and fired != self._collected:
            self._collected = fired
            self.recorder.note("host.acted", {"host": self.target.name, "folder": self.run, **fired})
            self.tools.reporter.note(f"{self.target.name}: {acted(fired)}")

    def take_over(self) -> None:
        """Shut out whatever an earlier play of this run still does on the host, by a higher generation.

        Without contact the lease stays as it is: the play that follows is refused where it is over.
        """
        if self.held is None:
            self.take()
            return
        with suppress(ContactLost):
            self.take()

    def _ask_for(self) -> tuple[Lease, dict[str, Any]]:
        """One try: above whatever the host has seen of this run. Raises Locked where somebody else has it."""
        standing = self.target.ask("standing", {"run": self.run})
        self._collect(standing)
        self._watched = bool(standing.get("keeper_running"))
        generation = max(self.generation, _seen(standing, self.run)) + 1
        wanted = Lease(self.run, generation, secrets.token_hex(16), self.seconds)
        args = {**wanted.as_args(), "seconds": wanted.seconds, "owner": self.tools.actor,
                "controller": self.recorder.run}  # fmt: skip
        try:
            return wanted, self.target.ask("lease", args)
        except HostCallError as error:
            if error.reason in OTHERS:
                raise Locked(str(error), reason=error.reason) from error
            raise

    def _hold(self, lease: Lease) -> None:
        self.stop_beating()
        self.right.held = lease
        self.right.needed_by.add(self.run)
        if self.armed and not self._watched:
            self.armed = None  # nobody sleeps there any more: the next play arms anew
        self.right.beating = self.tools.heart.beat(self.target.address, lease, self.target.with_state(lease.as_args()))

    @contextmanager
    def arming(self, way_back: Mapping[str, Any]) -> Iterator[Arming]:
        """Around a play that changes something: it arms the dead-man first, if that was not done yet.

        Args:
            way_back: what the dead-man does: `only`, `manager`, `service` of the host call `bring_back`.

        Raises:
            HostCallError: the play came to its end without an armed dead-man.
        """
        if self.armed:
            yield Arming({})
            return
        body = {"host": self.target.name, "folder": self.run, "generation": self.generation}
        self.armed = None
        with self.recorder.acting("arm", body) as outcome:
            arming = Arming({"changectl_arm": {**way_back, **self._nonce(), "head": _head(outcome.intent)}})
            yield arming
            answer = arming.answer()
            if not answer.get("armed"):
                raise HostCallError(f"{self.target.name}: the dead-man was not armed", reason="not_armed")
            self.armed, self.reboot_safe = True, bool(answer.get("reboot_safe"))
            outcome.update(host=self.target.name, armed=True, keeper=answer.get("keeper"), nonce=self._nonce()["nonce"],
                           reboot_safe=self.reboot_safe, why=answer.get("why"))  # fmt: skip

    def _nonce(self) -> dict[str, Any]:
        return {"nonce": self.held.nonce} if self.held is not None else {}

    def disarm(self, decision: str) -> None:
        """Have the host record the decision, which is what makes it one; then the dead-man goes.

        Args:
            decision: kept, reverted or accepted.

        Raises:
            HostCallError: reason `lease_lost`: the dead-man was first.
            ContactLost: whether the host has it on record is not known.
        """
        if self.held is None or self.armed is False:
            return
        body = {"host": self.target.name, "folder": self.run, "decision": decision, **self._nonce()}
        with self.recorder.acting("disarm", body) as outcome:
            head = _head(outcome.intent)
            answer = self._decide({**self.held.as_args(), "run": self.run, "outcome": decision, "head": head})
            if decision == "kept" and not answer.get("disarmed"):
                # Kept is what the host has on record; one that was not armed any more records nothing.
                raise HostCallError(f"{self.target.name}: the host did not record the decision", reason="not_armed")
            outcome.update(host=self.target.name, decision=decision, nonce=self.held.nonce, head=head,
                           left_behind=answer.get("left_behind") or [])  # fmt: skip
            self.armed = False

    def _decide(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """A decision whose answer got lost is asked for again: the host takes the same one twice, and says so."""
        until = self.patience()
        while True:
            try:
                return self.target.ask("disarm", args)
            except ContactLost as error:
                if not self.wait_for_contact(error, until):
                    raise

    def patience(self) -> float:
        """Until when, by the monotonic clock, it makes sense to go on trying to reach the host."""
        return self.tools.clock.monotonic() + self.seconds + GRACE

    def wait_for_contact(self, error: Exception, until: float) -> bool:
        """Whether it makes sense to try once more to reach the host, after a short while."""
        left = until - self.tools.clock.monotonic()
        if self.armed is False or left <= 0:
            return False
        what = f"{self.target.name} does not answer, its dead-man will restore it ({error})"
        self.tools.reporter.waiting(what, elapsed=self.seconds + GRACE - left, expected=self.seconds + GRACE)
        self.tools.clock.sleep(min(TRY_AGAIN, max(0.1, self.seconds / 10)))
        return True

    @property
    def left(self) -> float | None:
        """Seconds until the host acts by itself if it hears nothing more; None: it will not."""
        return None if self.right.beating is None or self.armed is False else self.right.beating.left

    @property
    def over(self) -> str | None:
        """Why the host acts by itself, now or before the next sign of life is due; None: nothing says so."""
        if self.lost is not None or self.held is None or self.left is None or self.left > self.held.beat:
            return self.lost
        return f"{self.target.name} is silent, and its dead-man acts in {max(0.0, self.left):.0f} s"

    @property
    def ends_run(self) -> str | None:
        """Why the run cannot go on with this lease; None: it can."""
        return self.over if self.silence_ends else self.lost

    def give_back(self) -> None:
        """Give the host free, unless a dead-man there is still needed, or another instance of the run needs the lease.

        Nothing that goes wrong here matters any more: the host refuses as long as anything of the run is armed there.
        """
        self.right.needed_by.discard(self.run)
        if self.right.needed_by:
            return
        self.stop_beating()
        if self.held is not None and self.armed is False:
            with suppress(Exception):
                self.target.ask("release", self.held.as_args())
        self.right.held = None

    def stop_beating(self) -> None:
        """Give no more signs of life."""
        if self.right.beating is not None:
            self.right.beating.stop()


@dataclass
class Arming:
    """What a play has to be told so that it arms, and what it said."""

    variables: dict[str, Any]
    answers: Sequence[Mapping[str, Any]] = ()

    def answer(self) -> Mapping[str, Any]:
        """What the host said of arming."""
        return next((answer["arm"] for answer in self.answers if isinstance(answer.get("arm"), Mapping)), {})


def _seen(standing: Mapping[str, Any], run: str) -> int:
    """The highest generation of a run that a host knows: of its folders, of its lease, of its dead-man."""
    lease, fired = standing.get("lease") or {}, standing.get("fired") or {}
    known = [
        standing.get("seen"),
        fired.get("generation"),
        lease.get("generation") if lease.get("run") == whole(run) else 0,
    ]
    return max(int(one or 0) for one in known)


def right_of(target: Leased, folder: str, leases: Iterable[HostLease]) -> Right:
    """The lease that a run folder needs: that of another instance of the same run on the same host, else a new one."""
    wanted = (target.address.name, whole(folder))
    known = (one.right for one in leases if (one.target.address.name, whole(one.run)) == wanted)
    return next(known, Right())


def lease_seconds(target: Target, tools: Tools) -> float:
    """How long a lease on this instance's host lasts without a sign of life."""
    service = target.service
    last = tools.memory.load_seconds(service.service)
    return length(service.lease, last, service.drain or USUAL_STOP)


def _head(event: Event | None) -> dict[str, Any] | None:
    """The journal's head, as the host witnesses it."""
    return None if event is None else {"sequence": event.sequence, "hash": event.hash}
