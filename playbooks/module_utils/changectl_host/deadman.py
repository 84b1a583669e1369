"""The dead-man: sleeps until the lease of its run is over, and then brings the saved configuration back."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, Dict, Optional, Tuple

from . import boot_unit, firing, keeper, lease, records, switching, whole
from .acting import own_right
from .failure import Failure
from .hanging import Hanging
from .locks import host_lock, lease_lock
from .state import Run, boot_seconds

Record = Dict[str, Any]
SLEEP, ACT, END = "sleep", "act", "end"
_SLICE = 0.5  # seconds between two looks at the deadline: a later owner may have a shorter lease
_PAUSES = (2.0, 5.0, 10.0, 30.0, 60.0)  # seconds between tries, the last one again and again
_GIVE_UP = 3600.0  # seconds after the first try
_GIVE_UP_TRAFFIC = 86400.0  # a member that does not answer today may do so tomorrow, and nothing is touched meanwhile
_LOCK_SLICE = 1.0  # seconds to wait for a change in progress before looking again
_STOP_GRACE = 60.0  # seconds of a service's stop, where the armed record does not tell
INTERRUPTED = 75  # exit status on SIGTERM: not done, so that systemd starts it again unless it was asked to stop it


class Sleeper:
    """One run's sleeper. `lock` is its own, from `keeper.hold`."""

    def __init__(self, run: Run, lock: int) -> None:
        self.run = run
        self.lock = lock
        self.known: Optional[float] = None  # deadline read last, for when the lease cannot be read
        self.ended = False
        self.bell = keeper.open_bell(run)
        self.hanging = Hanging(run)

    def listen(self) -> None:
        """SIGTERM: end, but never in the middle of a way back."""
        signal.signal(signal.SIGTERM, self._heard)
        signal.set_wakeup_fd(self.bell, warn_on_full_buffer=False)

    def _heard(self, *_: Any) -> None:
        self.ended = True

    def sleep(self, seconds: float) -> None:
        """Sleep at most one slice; the bell ends it."""
        ready, _, _ = select.select([self.bell], [], [], max(0.0, min(seconds, _SLICE)))
        if ready:
            os.read(self.bell, 4096)

    def watch(self) -> int:
        """Sleep, act, end; returns the exit status."""
        while not self.ended:
            try:
                what, seconds = self.look()
                if what == ACT and not self.act():
                    return 0  # given up; a person has to look, and everything still says so
                if what != ACT and self.end_if_over():
                    return 0
            except (Failure, OSError):
                seconds = _SLICE  # what cannot be read now may be readable later
            self.sleep(seconds)
        return INTERRUPTED

    def look(self) -> Tuple[str, float]:
        """What is to be done now, and else how long to sleep."""
        if records.armed(self.run) is None:
            return END, 0.0
        try:
            held = lease.present()
            mine = held is not None and lease.is_of(held, self.run)
            left = lease.left(held) if held is not None and mine else 0.0
            self.known = boot_seconds() + left
        except Failure as failure:
            if failure.reason == "newer_format":
                raise
            left = 0.0 if self.known is None else self.known - boot_seconds()
        return (SLEEP, left) if left > 0.0 else (ACT, 0.0)

    def end_if_over(self) -> bool:
        """Stop keeping watch when nothing is armed; decided under the lease lock, as arming is."""
        with lease_lock():
            if records.armed(self.run) is not None:
                return False
            os.close(self.lock)
            return True

    def act(self) -> bool:
        """Bring the saved configuration back; again and again for an hour when that fails, then False."""
        begun, tries = boot_seconds(), 0
        while not self.ended and self._may_act():
            try:
                with host_lock(self.run.root, _LOCK_SLICE):
                    done = self._try()
            except Failure as failure:
                if failure.reason != "host_busy":
                    raise
                # Somebody's change still goes on, for instance a stop.
                self.hanging.look(self._stop_grace(), self._may_act)
                continue
            if done:
                return True
            self.hanging.look(self._stop_grace(), self._may_act)  # with the lease's lock, perhaps
            if boot_seconds() - begun > self._patience():
                return False
            self._pause(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
        return True

    def _may_act(self) -> bool:
        return self.look()[0] == ACT

    def _stop_grace(self) -> float:
        served = (records.armed(self.run) or {}).get("service") or {}
        return float(served.get("stop_timeout") or _STOP_GRACE)

    def _patience(self) -> float:
        return _GIVE_UP_TRAFFIC if (records.armed(self.run) or {}).get("traffic") else _GIVE_UP

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.ended and time.monotonic() < deadline and self._may_act():
            self.sleep(deadline - time.monotonic())

    def _try(self) -> bool:
        """One try, under the host lock, so that no change goes on meanwhile; whether it is done."""
        try:
            begun = self._begin()
            if begun is None:
                return True
            armed, fired = begun
            try:
                with own_right(self.run):
                    answer = bring_back(self.run, armed, fired["generation"])
            except (Failure, OSError) as error:
                firing.fail(self.run, fired, error, final=boot_seconds() - fired["boot_seconds"] > self._patience())
                return False
            firing.end(self.run, fired, answer)
            with lease_lock():
                if records.forget_armed(self.run, armed.get("nonce")):
                    boot_unit.remove(self.run)
                    lease.settle(self.run)
        except (Failure, OSError):
            return False  # e.g. the disk is full: it may have room later
        return True

    def _begin(self) -> Optional[Tuple[Record, Record]]:
        """Decide once more, now that nobody else acts; from here on every older call is shut out."""
        with lease_lock():
            armed = records.armed(self.run)
            if armed is None or not self._may_act():
                return None
            return armed, firing.begin(self.run, "deadman", armed)


def bring_back(run: Run, armed: Record, generation: int) -> Record:
    """The way back that was armed; where the run has touched nothing yet, there is nothing to do."""
    if run.events() and not records.touched(run):  # a list that is gone may have held anything
        return {"changed": False, "files": {}}
    wanted: Record = {"run": run.name, "generation": generation, "state_dir": run.root, "only": armed.get("only")}
    if armed.get("traffic"):
        return switching.put_back({**wanted, "traffic": armed["traffic"]})
    if armed.get("service") or (armed.get("damaged") and armed.get("only") is None):
        wanted.update(firing.service_of(run, armed))  # where no record tells any more, as the snapshot does
    return whole.bring_back(wanted)


def deadman(args: Record) -> int:
    """The action of the program: keep watch over a run until it is disarmed or brought back; the exit status."""
    run = Run.of(args)
    lock = keeper.hold(run)
    if lock is None:
        return 0  # somebody else keeps watch
    sleeper = Sleeper(run, lock)
    if args.get("detach"):
        # Only now: whoever started this process sees whatever could go wrong so far.
        keeper.detach()
    keeper.sign(lock, args.get("unit"))
    sleeper.listen()
    return sleeper.watch()
