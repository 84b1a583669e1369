"""Runs as the journal holds them, for the tests of history, reports and reading commands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from changectl.core.ports import Event

START = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
VALUES = {place: {"before": "64", "after": "128"} for place in ("file", "process")}
DIFF = (
    "--- /etc/vllm/chat.yaml (before)\n+++ /etc/vllm/chat.yaml (after)\n"
    "@@ -1 +1 @@\n-max-num-seqs: 64\n+max-num-seqs: 128\n"
)

ROWS = [
    {
        "metric": "rps_ok",
        "unit": "req/s",
        "level": "peak",
        "before": 4.0,
        "after": 5.0,
        "change": 0.25,
        "limit": "at least +10%",
        "state": "within",
        "note": "",
        "gap": False,
    },
    {
        "metric": "e2e_user_p95",
        "unit": "s",
        "level": "peak",
        "before": None,
        "after": "unbounded",
        "change": None,
        "limit": "",
        "state": "not judged",
        "note": "too few",
        "gap": False,
    },
]


class Tape:
    """Events one second apart, as a journal would return them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, run: str, kind: str, body: Mapping[str, Any] | None = None, *, step: int = 0) -> None:
        number = len(self.events) + 1
        at = (START + timedelta(seconds=number - 1)).isoformat(timespec="microseconds")
        self.events.append(Event(number, run, step, kind, at, body or {}, f"hash{number}"))

    def opened(self, run: str, *, steps: int = 1, **more: Any) -> None:
        change = {"kind": "parameter", "name": "max-num-seqs", "from": "64", "to": "128"}
        body = {
            "plan": "changeplans/more.yml",
            "plan_digest": "d" * 64,
            "plan_text": "version: 1\n",
            "service": "chat",
            "reason": "GPU idle",
            "ticket": "OPS-1",
            "actor": "ann@gateway",
            "hosts": ["gpu1"],
            "tool_version": "0.1.0",
            "steps": [{"change": change, "expect": {"rps_ok at peak": "+10%"}, "accept": {}} for _ in range(steps)],
        }
        self.add(run, "run.opened", {**body, **more})

    def step(
        self, run: str, outcome: str, verdict: str | None, *, number: int = 1, outage: float | None = 12.5
    ) -> None:
        self.add(run, "step.started", step=number)
        edit = {"host": "gpu1", "path": "/etc/vllm/chat.yaml", "before_sha": "a" * 64, "after_sha": "b" * 64}
        self.add(run, "precheck", {"host": "gpu1", "results": [_check()]}, step=number)
        self.add(run, "edit", {**edit, "diff": DIFF}, step=number)
        self.add(run, "arm.outcome", {"armed": False, "why": "not built yet", "host": "gpu1"}, step=number)
        self.add(run, "restart.intent", {"host": "gpu1"}, step=number)
        self.add(run, "restart.outcome", {"ok": True}, step=number)
        self.add(run, "effective.outcome", {"host": "gpu1", "values": VALUES, "effective": True}, step=number)
        if verdict is not None:
            reasons = [{"code": "gain", "text": "it is faster"}]
            body = {"host": "gpu1", "verdict": verdict, "reasons": reasons, "rows": ROWS, "flags": []}
            self.add(run, "verdict", body, step=number)
        body = {"outcome": outcome, "verdict": verdict, "outage_seconds": outage, "reason": "judged"}
        self.add(run, "step.closed", body, step=number)

    def closed(self, run: str, outcome: str, exit_code: int) -> None:
        self.add(run, "run.closed", {"outcome": outcome, "exit_code": exit_code})

    def whole(self, run: str, outcome: str = "kept", verdict: str | None = "improved", **more: Any) -> None:
        self.opened(run, **more)
        self.step(run, outcome, verdict)
        self.closed(run, outcome, 0 if outcome == "kept" else 4)


def _check() -> dict[str, str]:
    words = {"name": "disk", "level": "required", "state": "passed"}
    return {**words, "figure": "3 GB needed, 40 GB free", "detail": "there is room", "hint": ""}
