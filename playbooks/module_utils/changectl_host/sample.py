"""Looks at host, service and engine page at an interval, in the background of this conversation, while a load runs.

One sampler at a time: it is started, and collected when the load is over. It changes nothing, ends by itself after the
time it was given, and with this process: nobody has to stop it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
import time
import zlib
from typing import Any, Dict, List, Optional

from . import nvml, probe, sampled_host, sampled_service
from .failure import Failure

_SHORTEST, _LONGEST = 0.1, 60.0  # seconds between two looks
_NICE = 5
_MOST = 7200  # looks that are kept; beyond it every second one is dropped and the interval doubled

Look = Dict[str, Any]


class _Sampler:
    """Takes looks; what cannot be read is in `missing`, by its name."""

    def __init__(self, args: Dict[str, Any]) -> None:
        self.interval = min(_LONGEST, max(_SHORTEST, float(args.get("interval") or 1.0)))
        self._service = sampled_service.Service(args["manager"]) if args.get("manager") else None
        self._page = args.get("page")
        self._series = tuple(str(name) for name in args.get("series") or ())
        self._nvml: Optional[nvml.Held] = None
        self.missing: Dict[str, str] = {}
        self.looks: List[Look] = []
        self.cpu_seconds = 0.0
        self._source = args.get("nvml")
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def begin(self, seconds: float) -> None:
        """Go on in the background, for so many seconds at most."""
        self._thread = threading.Thread(target=self._run, args=(seconds,), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """One last look, and no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(2 * _page_timeout(self.interval) + 5)

    def once(self) -> Look:
        """One look, and NVML given back."""
        self._open_nvml()
        try:
            return self._look()
        finally:
            self._close_nvml()

    @property
    def names(self) -> Dict[str, str]:
        """What the service's threads call themselves."""
        return self._service.names if self._service else {}

    def _run(self, seconds: float) -> None:
        with contextlib.suppress(OSError):  # of this thread alone: what is measured goes first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        begun, used = time.monotonic(), time.thread_time()
        self._open_nvml()
        try:
            due, last = begun, False
            while True:
                self._keep(self._look())
                if last:
                    return
                due = max(due + self.interval, time.monotonic())
                self._over.wait(max(0.0, due - time.monotonic()))
                last = self._over.is_set() or time.monotonic() - begun >= seconds
        finally:
            self._close_nvml()
            self.cpu_seconds = time.thread_time() - used

    def _keep(self, look: Look) -> None:
        self.looks.append(look)
        if len(self.looks) > _MOST:
            self.looks = self.looks[::2]
            self.interval = min(_LONGEST, 2 * self.interval)

    def _look(self) -> Look:
        found: Look = {"at": time.time(), "clock": time.monotonic(), **sampled_host.look(self.missing)}
        if self._service is not None:
            found.update(self._service.look(self.missing))
        if self._page is not None:
            found["page"] = self._engine_page()
        if self._nvml is not None:
            try:
                found["gpus"] = self._nvml.gpus()
            except Exception as error:  # noqa: BLE001 - foreign code: the other figures matter all the same
                self.missing["gpus"] = f"NVML: {error}"
        return found

    def _engine_page(self) -> Look:
        """The lines of the engine's page that hold the wanted series; the rest of it may be large."""
        request = dict(self._page or {})
        timeout = float(request.get("timeout") or 5.0)
        answer = probe.ask({**request, "timeout": min(timeout, _page_timeout(self.interval))})
        if answer["error"] is None and answer["status"] == 200:
            lines = answer["body"].splitlines()
            return {"status": 200, "body": "\n".join(line for line in lines if line.startswith(self._series)) + "\n"}
        return {"status": answer["status"], "error": answer["error"]}

    def _open_nvml(self) -> None:
        if self._source is None:
            self.missing["gpus"] = "no NVML bindings were brought to this host"
            return
        try:
            self._nvml = nvml.Held(self._source)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            self.missing["gpus"] = f"NVML cannot be asked: {error}"

    def _close_nvml(self) -> None:
        held, self._nvml = self._nvml, None
        if held is not None:
            try:
                held.close()
            except Exception as error:  # noqa: BLE001 - foreign code
                self.missing["gpus"] = f"NVML: {error}"


def _page_timeout(interval: float) -> float:
    """An engine that is slow to answer must not stretch the interval beyond its double."""
    return max(1.0, interval)


_running: Optional[_Sampler] = None
_lock = threading.Lock()


def sample(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: looks at host and service.

    `action` is

    - `once`: {look, missing, threads}.
    - `start` (`seconds` at most, `interval`): {interval}; a sampler that runs already is ended and its looks are lost.
    - `collect`: {looks: b64 of zlib of JSON lines, count, interval, missing, threads, cpu_seconds}.

    Further arguments: `manager`; `page`, a request as `probe` takes it, with `series`, the names to keep of it; `nvml`,
    the source of the bindings.

    Raises:
        Failure: `bad_arguments`; `not_sampling`: there is nothing to collect.
    """
    action = args.get("action")
    if action == "once":
        sampler = _Sampler(args)
        look = sampler.once()
        return {"look": look, "missing": sampler.missing, "threads": sampler.names}
    if action == "start":
        return _start(args)
    if action == "collect":
        return _collect()
    raise Failure("bad_arguments", f"action must be once, start or collect, not {action!r}")


def _start(args: Dict[str, Any]) -> Dict[str, Any]:
    global _running
    sampler = _Sampler(args)
    with _lock:
        earlier, _running = _running, sampler
    if earlier is not None:
        earlier.end()
    sampler.begin(float(args.get("seconds") or 3600.0))
    return {"interval": sampler.interval}


def _collect() -> Dict[str, Any]:
    global _running
    with _lock:
        sampler, _running = _running, None
    if sampler is None:
        raise Failure("not_sampling", "nothing is being sampled here")
    sampler.end()
    looks = list(sampler.looks)
    data = "".join(json.dumps(look) + "\n" for look in looks).encode()
    return {
        "looks": base64.b64encode(zlib.compress(data, 6)).decode("ascii"),
        "count": len(looks),
        "interval": sampler.interval,
        "missing": dict(sampler.missing),
        "threads": dict(sampler.names),
        "cpu_seconds": round(sampler.cpu_seconds, 6),
    }
