"""Signs of life: a thread that extends a run's lease on a host, over a connection of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from changectl.core.errors import HostCallError
from changectl.core.lease import Lease
from changectl.core.ports import Door, HostAddress, Json

ANSWER_WITHIN = 10.0  # seconds at most; less where the lease is short
AGAIN = 1.0  # seconds until a beat that got lost is tried again
STOP_WITHIN = 2.0  # seconds that a beat under way gets to end


@dataclass
class HostHeart:
    """Fulfils core.ports.Heart. The connection is opened by the thread, so nobody waits for it."""

    open_door: Callable[[HostAddress], Door]

    def beat(self, host: HostAddress, lease: Lease, args: Json) -> Beating:
        """Begin to extend a lease that was just taken."""
        beating = Beating(lambda: self.open_door(host), lease, dict(args))
        beating.start()
        return beating


@dataclass
class Beating:
    """One lease that is kept alive; fulfils core.ports.Beating."""

    open_door: Callable[[], Door]
    lease: Lease
    args: Json
    _door: Door | None = field(default=None, init=False)
    _lost: str | None = field(default=None, init=False)
    _last: float = field(default_factory=time.monotonic, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name=f"lease of {self.lease.run}", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> str | None:
        """Why the lease is ours no more, as the host said; None: as far as is known it is."""
        return self._lost

    @property
    def left(self) -> float:
        """Seconds until the host acts by itself if it hears nothing more."""
        return self._last + self.lease.seconds - time.monotonic()

    def stop(self) -> None:
        """Give no more signs; the lease itself stays as it is."""
        self._ended.set()
        self._thread.join(STOP_WITHIN)

    def _run(self) -> None:
        pause = self.lease.beat
        while not self._ended.wait(pause):
            pause = self.lease.beat if self._once() else min(AGAIN, self.lease.beat)
            if self._lost is not None:
                break
        self._close()

    def _once(self) -> bool:
        try:
            if self._door is None:
                self._door = self.open_door()
            self._door.call("extend", self.args, timeout=min(ANSWER_WITHIN, max(1.0, self.lease.seconds / 2)))
        except HostCallError as error:
            if error.reason == "lease_lost":
                self._lost = str(error)
            return False
        except Exception:  # noqa: BLE001 - the host acts by itself when no beat comes through; there is nothing to tell
            self._close()
            return False
        self._last = time.monotonic()
        return True

    def _close(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            door.close()
