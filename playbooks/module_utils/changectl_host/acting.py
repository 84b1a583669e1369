"""Who may change something on this host now: the owner of its live lease, or who brings saved files back instead."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, Set, Tuple

from . import lease
from .failure import Failure
from .locks import HOST_WAIT, host_lock
from .state import FORMAT, Run, save_json

_thread = threading.local()  # the runs that this thread brings back in its own right


@contextlib.contextmanager
def mutating(args: Dict[str, Any], *, without_lease: bool = False) -> Iterator[Run]:
    """The frame of every call that changes something: lock, generation, lease, run folder.

    The lease is looked at under the host lock: one that runs out while the call goes on is no harm, because whoever
    acts then waits for that lock. An orphan that waited for the lock itself finds the lease gone.

    Args:
        args: run, generation, state_dir, lock_wait.
        without_lease: for calls that take away what nobody needs any more.

    Raises:
        Failure: `stale_generation` when somebody with a higher generation has taken the run over; `no_lease`;
            `lease_lost`.
    """
    run = Run.of(args)
    generation = lease.number(args)
    wait = args.get("lock_wait")
    with host_lock(run.root, HOST_WAIT if wait in (None, "") else float(wait)):
        seen = run.header().get("generation", -1)
        if seen > generation:
            message = (
                f"run {run.name} was taken over by generation {seen}; generation {generation} may not act any more"
            )
            raise Failure("stale_generation", message, generation=seen)
        if not without_lease and (run.folder, generation) not in _rights():
            lease.require(run, generation)
        run.make()
        run.generation = generation
        if seen < generation:
            save_json(run.path("run.json"), {"format": FORMAT, "run": run.name, "generation": generation})
        yield run


@contextlib.contextmanager
def own_right(run: Run) -> Iterator[None]:
    """For the dead-man, the boot and a person by hand: they ended the lease, and act under the host lock they hold.

    Args:
        run: the run, with the generation that they raised it to.
    """
    right = (run.folder, int(run.generation or 0))
    _rights().add(right)
    try:
        yield
    finally:
        _rights().discard(right)


def _rights() -> Set[Tuple[str, int]]:
    rights: Set[Tuple[str, int]] = _thread.__dict__.setdefault("rights", set())
    return rights
