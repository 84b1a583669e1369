"""A host's memory of leases and dead-men, as the real one answers; the dead-man itself never acts here by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from changectl.core.errors import HostCallError
from changectl.core.lease import whole


@dataclass
class FakeKeeper:
    """Who has the host, which run is armed there, and what was decided."""

    holder: dict[str, Any] | None = None
    armed: dict[str, dict[str, Any]] = field(default_factory=dict)
    decided: dict[str, dict[str, Any]] = field(default_factory=dict)
    fired: dict[str, dict[str, Any]] = field(default_factory=dict)
    keeper_gone: bool = False  # what is armed has nobody who sleeps
    keeper_fails: bool = False  # the sleeping process cannot be started

    def standing(self, run: str) -> dict[str, Any]:
        return {
            "lease": self.holder,
            "armed": self.armed.get(run),
            "keeper_running": not self.keeper_gone if run in self.armed else None,
            "disarmed": self.decided.get(run),
            "fired": self.fired.get(run),
        }

    def lease(self, host: str, args: Mapping[str, Any], seen: int) -> dict[str, Any]:
        """As the real one: the folder's own generation grows with the next call that changes something."""
        before = self.holder
        if before is not None and before["run"] != whole(args["run"]):
            text = f"{host}: run {before['run']} of {before['owner']} is at work here"
            raise HostCallError(text, reason="held", details=before)
        if args["generation"] <= max(seen, 0 if before is None else before["generation"]):
            raise HostCallError(f"{host}: run {args['run']} was taken over", reason="stale_generation")
        self.holder = {name: args[name] for name in ("generation", "nonce", "owner", "seconds")}
        self.holder["run"] = whole(args["run"])
        for run in self.armed:
            self.armed[run] |= {"nonce": args["nonce"]}
        return {**self.holder, "left": args["seconds"], "taken_over": before}

    def require(self, host: str, run: str, generation: int) -> None:
        if self.holder is None or (self.holder["run"], self.holder["generation"]) != (whole(run), generation):
            raise HostCallError(f"{host}: run {run} has no lease here", reason="lease_lost")

    def arm(self, host: str, run: str, asked: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if asked is None:
            return None
        assert self.holder is not None
        assert asked["nonce"] == self.holder["nonce"]
        if self.keeper_fails:
            raise HostCallError(f"{host}: nothing can sleep here", reason="not_armed", details={"written": False})
        self.armed[run], self.keeper_gone = {**asked}, False
        self.decided.pop(run, None)
        return {"armed": True, "keeper": "systemd", "reboot_safe": True, "left": self.holder["seconds"]}

    def disarm(self, host: str, args: Mapping[str, Any]) -> dict[str, Any]:
        done = self.decided.get(args["run"])
        if done is not None and done["nonce"] == args["nonce"]:
            return {"disarmed": True, "changed": False}
        self.require(host, args["run"], args["generation"])
        if args["run"] not in self.armed:
            return {"disarmed": False}
        told = {name: args[name] for name in ("outcome", "nonce", "generation", "head")}
        self.decided[args["run"]] = {**told, "at": "?"}
        del self.armed[args["run"]]
        return {"disarmed": True, "changed": True, "left_behind": []}

    def run_out(self) -> list[str]:
        """The lease is over; returns the runs whose dead-man acts now."""
        self.holder = None
        return list(self.armed)

    def acted(self, run: str, generation: int) -> None:
        """The dead-man brought the saved configuration of a run back."""
        self.armed.pop(run)
        self.fired[run] = {"by": "deadman", "state": "done", "outcome": "restored", "generation": generation, "at": "?"}

    def release(self, args: Mapping[str, Any]) -> dict[str, Any]:
        ours = self.holder is not None and self.holder["nonce"] == args["nonce"]
        if ours and self.armed:
            raise HostCallError(f"run {args['run']} is armed", reason="armed")
        if ours:
            self.holder = None
        return {"released": ours}
