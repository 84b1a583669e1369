"""The looks that a fake host's sampler takes: an idle host, and what a test wants to be seen while a load runs."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from changectl.core.errors import HostCallError

Parts = Callable[[list[str], float], dict[str, Any]]  # command line, seconds since the start -> parts of a look
INTERVALS = 4  # between two looks of one phase


def nothing(argv: list[str], seconds: float) -> dict[str, Any]:
    """An idle host that tells nothing more."""
    return {}


@dataclass
class FakeSampler:
    """Fulfils the host call `sample`."""

    seen: Parts = nothing
    began: float | None = None
    missing: dict[str, str] = field(default_factory=lambda: {"gpus": "no NVML bindings were brought to this host"})
    fails: HostCallError | None = None  # whatever it is asked

    def call(self, args: Mapping[str, Any], seconds: float, process: tuple[int, list[str]] | None) -> dict[str, Any]:
        if self.fails is not None:
            raise self.fails
        if args["action"] == "start":
            self.began = seconds
            return {"interval": 1.0}
        if args["action"] == "once":
            return {"look": self._look(seconds, seconds, process), "missing": self.missing, "threads": {"7": "main"}}
        if self.began is None:
            raise HostCallError("nothing is being sampled", reason="not_sampling")
        began, self.began = self.began, None
        moments = [began + (seconds - began) * number / INTERVALS for number in range(INTERVALS + 1)]
        lines = "".join(json.dumps(self._look(moment, began, process)) + "\n" for moment in moments)
        looks = base64.b64encode(zlib.compress(lines.encode())).decode()
        return {"looks": looks, "count": len(moments), "interval": 1.0, "missing": self.missing,
                "threads": {"7": "main"}, "cpu_seconds": 0.01}  # fmt: skip

    def _look(self, moment: float, began: float, process: tuple[int, list[str]] | None) -> dict[str, Any]:
        pid, argv = process or (None, [])
        return {"at": 1e9 + moment, "clock": moment, "process": None if pid is None else [pid, pid], "rss": 1000,
                **self.seen(argv, moment - began)}  # fmt: skip
