"""What a whole play does, in one call: each further task of a play costs a third of a second and a new interpreter."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, TypeVar

from . import arming, records, restoring, service, writes
from .failure import Failure, from_os_error
from .state import Run

Answer = Dict[str, Any]
T = TypeVar("T")

_COMMON = ("run", "generation", "state_dir", "lock_wait")


def change(args: Dict[str, Any]) -> Dict[str, Any]:
    """Write the files of one change, then let the service read them: {changed, writes, service?, arm?}.

    `service` and `manager` are those of the call `service`; `arm` holds the arguments of the call `arm`, which is done
    first. A restart is left out when the service runs since after
    the last write of the run.

    Raises:
        Failure: as the calls `write_all` and `service`; the service is not touched when a file could not be written.
            `written` in the details says whether new bytes may be in force; where it is missing, that is not known.
    """
    _check(args)
    try:
        _require_startable(args)
    except Failure as failure:
        failure.details.setdefault("written", False)
        raise
    armed = _arm(args)
    written = writes.write_all({**_common(args), "writes": args.get("writes")})
    try:
        served = _serve(args, "fresh", None)
    except Failure as failure:
        failure.details["written"] = True
        raise
    return {**written, **_summary(written, served), **_told(service=served, arm=armed)}


def bring_back(args: Dict[str, Any]) -> Dict[str, Any]:
    """Restore saved files, the service stopped meanwhile when that is asked: {changed, files, stop?, start?, arm?}.

    Stop and start are left out when the files are the saved ones and the service runs on them already. Whatever can be
    known to stand in the way is looked at before the stop.

    Raises:
        Failure: as the calls `restore` and `service`. A service that does not run then is started again on what stands
            there: no service at all is worse than an unjudged one. `started` in the details says whether it was.
            With `still_held` the files are back all the same, for the next start: `files` says so.
    """
    _check(args)
    armed = _arm(args)
    held: Optional[Failure] = None
    stopped: Optional[Answer] = None
    wanted = {**_common(args), "only": args.get("only")}
    try:
        _require_startable(args)
        _with_room(args, lambda: restoring.require_restorable(wanted))
        try:
            stopped = _with_room(args, lambda: _serve(args, "restored", "stop"))
        except Failure as outliving:
            if outliving.reason != "still_held":
                raise
            held = outliving
        restored = _with_room(args, lambda: restoring.restore(wanted))
    except (Failure, OSError) as error:
        failure = error if isinstance(error, Failure) else from_os_error(error, "bringing the saved files back")
        failure.details["started"] = _start_again(args)
        raise failure from error
    if held is not None:
        raise _with_files_back(args, held, restored)
    started = _with_room(args, lambda: _serve(args, "fresh", "start"))
    return {**restored, **_summary(restored, stopped, started), **_told(stop=stopped, start=started, arm=armed)}


def _with_room(args: Dict[str, Any], act: Callable[[], T]) -> T:
    """On a full disk once more, with the room that was kept for the way back when it was armed."""
    try:
        return act()
    except (Failure, OSError) as error:
        failure = error if isinstance(error, Failure) else from_os_error(error, "bringing the saved files back")
        if failure.reason != "disk_full" or not records.free_reserve(Run.of(args)):
            raise failure from error
    return act()


def _with_files_back(args: Dict[str, Any], held: Failure, restored: Dict[str, Any]) -> Failure:
    """Something outlives the stop: the files are back for the next start, and a person hears what stands in its way."""
    held.message += "; the saved files are in place, and the next start reads them"
    held.args = (held.message,)
    held.details.update(files=restored["files"], started=_start_again(args))
    return held


def serve(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call `service`; with `arm`, the dead-man is armed before."""
    armed = _arm(args)
    return {**service.service(args), **_told(arm=armed)}


def _arm(args: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Arm the dead-man before anything is done, where that is asked; what the call `arm` answers.

    Raises:
        Failure: as `arm`; `armed` in the details is False: nothing was done by this call, whatever earlier ones did.
    """
    wanted = args.get("arm")
    if not wanted:
        return None
    if not isinstance(wanted, dict):
        raise Failure("bad_arguments", "arm must be an object")
    try:
        return arming.arm({**wanted, **_common(args)})
    except (Failure, OSError) as error:
        failure = error if isinstance(error, Failure) else from_os_error(error, "arming")
        failure.details["armed"] = False
        raise failure from error


def _start_again(args: Dict[str, Any]) -> bool:
    """Never leave the service stopped by our own failure; whether it was started."""
    try:
        served = _serve(args, "running", "start")
    except (Failure, OSError):
        return False  # the first failure is the one to tell
    return bool(served and served["changed"])


def _require_startable(args: Dict[str, Any]) -> None:
    if args.get("service"):
        service.require_startable({**args["service"], **_common(args), "manager": args["manager"]})


def _check(args: Dict[str, Any]) -> None:
    """Before anything is done: what the second half needs has to be there."""
    if args.get("service") is not None and not isinstance(args["service"], dict):
        raise Failure("bad_arguments", "service must be an object")
    if args.get("service") and not args.get("manager"):
        raise Failure("bad_arguments", "manager is missing: it is needed with service")


def _serve(args: Dict[str, Any], unless: str, action: Optional[str]) -> Optional[Dict[str, Any]]:
    """The call `service`, if it is asked for; `action` None: the one that the caller names."""
    if not args.get("service"):
        return None
    fixed = {} if action is None else {"action": action}
    only = {"only": args.get("only")}
    asked = {"unless": unless, **args["service"], **fixed, **only, **_common(args), "manager": args["manager"]}
    return service.service(asked)


def _common(args: Dict[str, Any]) -> Dict[str, Any]:
    return {name: args[name] for name in _COMMON if name in args}


def _summary(*answers: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """Of all parts: whether one changed something, the seconds of the service's, the last one's process."""
    parts = [answer for answer in answers if answer is not None]
    return {
        "changed": any(bool(answer.get("changed")) for answer in parts),
        "seconds": round(sum(float(answer.get("seconds", 0.0)) for answer in parts), 3),
        "started_pid": parts[-1].get("started_pid"),
    }


def _told(**answers: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    return {name: answer for name, answer in answers.items() if answer is not None}
