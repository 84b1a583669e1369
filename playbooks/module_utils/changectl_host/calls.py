"""The one table of calls; every door goes through `dispatch`."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional

from . import (
    arming,
    capture,
    connections,
    disarming,
    doctor,
    evidence,
    hello,
    host,
    inspection,
    lease,
    lease_taking,
    leftovers,
    locks,
    measure,
    model,
    nginx,
    nvml,
    probe,
    program_help,
    restoring,
    sample,
    standing,
    state,
    status,
    switching,
    unit_verify,
    verify,
    whole,
    writes,
)
from .failure import Failure, from_os_error

Progress = Callable[[Dict[str, Any]], None]
closing = threading.Event()  # set when the controller is gone: no change may begin any more

READING: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
    "hello": hello.hello,
    "host": host.host,
    "nvml": nvml.nvml,
    "inspect": inspection.inspect,
    "probe": probe.probe,
    "sample": sample.sample,
    "verify": verify.verify,
    "generation": state.generation,
    "standing": standing.standing,
    "witness": standing.witness,
    "leftovers": leftovers.leftovers,
    "status": status.status,
    "evidence": evidence.evidence,
    "unit_verify": unit_verify.unit_verify,
    "help": program_help.program_help,
    "doctor": doctor.doctor,
    "balancer": nginx.balancer,
    "connections": connections.connections,
}
REPORTING: Dict[str, Callable[[Dict[str, Any], Progress], Dict[str, Any]]] = {
    "model": model.model,
    "measure": measure.measure,
}
MUTATING: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
    "capture": capture.capture,
    "stage": writes.stage,
    "write": writes.write,
    "write_all": writes.write_all,
    "restore": restoring.restore,
    "service": whole.serve,
    "change": whole.change,
    "bring_back": whole.bring_back,
    "take_out": switching.take_out,
    "put_back": switching.put_back,
    "lease": lease_taking.take,
    "extend": lease.extend,
    "release": lease.release,
    "arm": arming.arm,
    "disarm": disarming.disarm,
    "cleanup": writes.cleanup,
    "forget": writes.forget,
}


def _tell_nobody(_: Dict[str, Any]) -> None:
    """For callers that do not watch."""


def dispatch(call: str, args: Dict[str, Any], progress: Optional[Progress] = None) -> Dict[str, Any]:
    """Do one call and return its answer.

    Args:
        call: a name from the tables above.
        args: its arguments, as JSON can carry them. With `upstream` the call is about what is held, saved and armed for
            that upstream of a balancer, and not about the host itself.
        progress: gets facts while long calls go on.

    Raises:
        Failure: it was not done; `reason` says why.
    """
    if not isinstance(args, dict):
        raise Failure("bad_arguments", f"{call}: args must be an object")
    try:
        if not args.get("upstream"):
            return _do(call, args, progress)
        with locks.of_upstream(args["upstream"]) as folder:
            return _do(call, {**args, "state_dir": folder}, progress)
    except OSError as error:
        raise from_os_error(error, f"{call} {error.filename or ''}".strip()) from error


def _do(call: str, args: Dict[str, Any], progress: Optional[Progress]) -> Dict[str, Any]:
    if call in REPORTING:
        return REPORTING[call](args, progress or _tell_nobody)
    if call in MUTATING and closing.is_set():
        raise Failure("closing", "the controller is gone: nothing is changed any more")
    function = READING.get(call) or MUTATING.get(call)
    if function is None:
        known = ", ".join(sorted([*READING, *REPORTING, *MUTATING]))
        raise Failure("unknown_call", f"the host program has no call {call!r}; it has {known}")
    return function(args)
