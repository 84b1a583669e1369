"""Take one member of a balancer out of service and put it back; the dead-man puts back only what answers."""

from __future__ import annotations

import time
from typing import Any, Dict, List

from . import arming, commands, nginx, probe, restoring, snapshot, writes
from .acting import mutating
from .failure import Failure, from_os_error
from .state import Run

Record = Dict[str, Any]
_COMMAND = 120.0  # seconds that an operator's command may take
_LOOKS = 2  # times that a member has to answer before it goes back
_BETWEEN = 1.0  # seconds between them
_COMMON = ("run", "generation", "state_dir", "lock_wait")


def check(traffic: Any) -> Record:
    """What is switched and how: {member, way, health}.

    Raises:
        Failure: `bad_arguments`.
    """
    found: Record = traffic if isinstance(traffic, dict) else {}
    way = found.get("way")
    known = isinstance(way, dict) and [*way] in (["nginx"], ["command"])
    if not known or not isinstance(found.get("health"), list):
        raise Failure("bad_arguments", "traffic must be {member, way: {nginx or command: {...}}, health: [requests]}")
    return dict(found)


def take_out(args: Record) -> Record:
    """The call: {changed, arm, ...}: the dead-man is armed, then the member gets no new requests.

    Args:
        args: run, generation, lock_wait; traffic; arm; for nginx `write` with path, expect and staged.

    Raises:
        Failure: as `arm` (then nothing was done); `changed_by_other`; `nginx_refuses`, `not_reloaded`,
            `command_failed`: the member is in service again, unless `back` in the details says why not.
    """
    traffic = check(args.get("traffic"))
    common = _common(args)
    with mutating(args) as run:
        armed = arming.arm({**args["arm"], **common, "traffic": traffic}) if args.get("arm") else None
        run.record("switch.intent", to="out", member=traffic.get("member"))
        try:
            done = _out(args, traffic)
        except (Failure, OSError) as error:
            failure = error if isinstance(error, Failure) else from_os_error(error, "taking a member out of service")
            run.record("switch.failed", to="out", reason=failure.reason)
            raise failure from error
        run.record("switch.outcome", to="out", member=traffic.get("member"))
        return {"changed": True, **done, **({} if armed is None else {"arm": armed})}


def put_back(args: Record) -> Record:
    """The call: {changed, ...}: the member gets requests again, if it answers.

    Args:
        args: run, generation, lock_wait; traffic; `unasked`: it goes back whether or not it answers; for nginx, where
            somebody changed the very line meanwhile, `write` with path, expect and staged.

    Raises:
        Failure: `member_sick`: it does not answer, and stays out; `changed_by_other`, `nginx_refuses`,
            `not_reloaded`, `command_failed`.
    """
    traffic = check(args.get("traffic"))
    if not args.get("unasked"):
        _require_healthy(traffic)
    with mutating(args) as run:
        run.record("switch.intent", to="in", member=traffic.get("member"))
        done = _in(run, args, traffic)
        run.record("switch.outcome", to="in", member=traffic.get("member"))
        return {"changed": True, **done}


def _require_healthy(traffic: Record) -> None:
    """Raises Failure `member_sick` unless every request is answered as it should be, each time."""
    for look in range(_LOOKS):
        if look:
            time.sleep(_BETWEEN)
        for request in traffic["health"]:
            answer = probe.ask(request)
            wanted = request.get("status") or 200
            if answer["status"] != wanted:
                said = answer["error"] or f"HTTP {answer['status']}"
                member = traffic.get("member") or "the instance"
                message = f"{member} stays out of service: {request.get('name')} says {said}, not HTTP {wanted}"
                raise Failure("member_sick", message)


def _out(args: Record, traffic: Record) -> Record:
    if "command" in traffic["way"]:
        return _by_command(args, traffic, "out", "in")
    of = nginx.master()
    written = writes.write({**_common(args), **(args.get("write") or {})})
    try:
        nginx.test(of)
        return {"method": written["method"], **nginx.reload(of)}
    except Failure as failure:
        failure.details["back"] = _nginx_as_before(args, traffic, of)
        raise


def _nginx_as_before(args: Record, traffic: Record, of: int) -> str:
    """The bytes are put back at once; "" or what stands in the way."""
    try:
        restoring.restore({**_common(args), "only": [traffic["way"]["nginx"]["file"]]})
        nginx.reload(of)
    except (Failure, OSError) as error:
        return str(error)
    return ""


def _in(run: Run, args: Record, traffic: Record) -> Record:
    if "command" in traffic["way"]:
        return _by_command(args, traffic, "in", None)
    if args.get("write"):
        files = {traffic["way"]["nginx"]["file"]: writes.write({**_common(args), **args["write"]})["method"]}
    elif snapshot.manifest_or_none(run) is None:
        files = {}  # nothing was ever written
    else:
        files = restoring.restore({**_common(args), "only": [traffic["way"]["nginx"]["file"]]})["files"]
    try:
        of = nginx.master()
    except Failure as failure:
        if failure.reason != "nginx_not_running":
            raise
        return {"files": files, "running": False}  # the next start reads it; nothing is started here
    nginx.test(of)
    return {"files": files, "running": True, **nginx.reload(of)}


def _by_command(args: Record, traffic: Record, which: str, undo: Any) -> Record:
    words: Dict[str, List[str]] = traffic["way"]["command"]
    failed = _run(words[which], args.get("run"))
    if failed:
        failure = Failure("command_failed", f"{words[which][0]} ({which}): {failed}")
        if undo is not None:
            failure.details["back"] = _run(words[undo], args.get("run"))
        raise failure
    return {"command": which}


def _run(argv: List[str], run: Any) -> str:
    """Run an operator's command; "" or why it failed."""
    try:
        done = commands.run(argv, timeout=_COMMAND, run_id=run)
    except Failure as failure:
        return failure.message
    return "" if done.status == 0 else f"ended with {done.status}: {(done.err or done.out).strip()[-400:]}"


def _common(args: Record) -> Record:
    return {name: args[name] for name in _COMMON if name in args}
