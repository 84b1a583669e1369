"""The proof that a host brings itself back: armed on a scratch file of ours, changed, and left alone.

All of it lies in the folder of a run of its own, so that one call takes it away. If we die in the middle, the lease
runs out, the dead-man brings back a file that nobody reads, and the next look names the folder that is left.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from changectl.core.digest import sha256
from changectl.core.doctor.examination import EARLY, LATEST
from changectl.core.doctor.facts import Greeting, Proof
from changectl.core.doctor.leftovers import PREFIX
from changectl.core.errors import ChangectlError, ContactLost, HostCallError, Refused
from changectl.core.lease import Lease, standing_of
from changectl.core.ports import Door, HostAddress
from changectl.workflow.doctor_tools import Instruments

LEASE = 2.0  # seconds without a sign of life that are proven
PREPARING = 90.0  # seconds of the lease while everything is made ready; a loaded machine takes its time
PLAY_TIMEOUT = 60  # seconds
CALL_TIMEOUT = 60.0  # seconds
AFTER = LATEST + 0.5  # seconds after the deadline that nobody contacts the host
SLICE = 0.2  # seconds; how soon somebody who asks for the end is heard
BACK_WITHIN = 30.0  # seconds that a slow host gets to bring the bytes back, or to answer again
SAVED, OTHER = b"what changectl saves to try it\n", b"what changectl writes to try it\n"
TAKEN = ("held", "armed_by_other")  # the host's words for: somebody else has it


class _NotProvenError(Exception):
    """The dead-man, or what has to come before it, does not work; the text says what."""


@dataclass
class Proving:
    """One proof on one host."""

    host: HostAddress
    state_dir: str | None
    greeting: Greeting
    tools: Instruments
    lease: Lease = field(init=False)

    def __post_init__(self) -> None:
        self.lease = Lease(f"{PREFIX}{self.tools.new_name()}", 1, self.tools.new_nonce(), PREPARING)

    def prove(self, door: Door) -> Proof:
        """Carry it out and take everything away again; `door` is open, and closed while nobody may contact the host."""
        try:
            try:
                self._take(door, self.lease)
            except HostCallError as error:
                return Proof("not_now" if error.reason in TAKEN else "failed", str(error))
            proof = self._act(door)
        except _NotProvenError as error:
            proof = Proof("failed", str(error))
        except ContactLost as error:
            proof = Proof("lost", str(error))
        except ChangectlError as error:
            proof = Proof("failed", str(error))
        except BaseException:
            # Somebody asks for the end: nothing stays behind, or it is named.
            for left in self._take_away():
                self.tools.tell(left)
            raise
        return replace(proof, left=self._take_away(), begun=True)

    # -- the proof ------------------------------------------------------------------------------------------------
    def _act(self, door: Door) -> Proof:
        path, armed = self._change(door)
        deadline = self._shorten(door)
        executable = self._plays_python(door)
        door.close()  # from here on nobody gives a sign of life, and nobody asks
        self._wait(LEASE + AFTER)
        with closing(self._open_again()) as again:
            fired = self._fired(again)
            late = float(fired["boot_seconds"]) - deadline
            self._judge(again, fired, late, path)
        seconds = _between(fired.get("at"), fired.get("ended_at"))
        return Proof(
            "proven", late=late, seconds=seconds, keeper=str(armed.get("keeper")),
            reboot_safe=bool(armed.get("reboot_safe")), unsafe_why=str(armed.get("why") or ""), executable=executable,
        )  # fmt: skip

    def _change(self, door: Door) -> tuple[str, Mapping[str, Any]]:
        """Save a scratch file, arm, and write other bytes into it as a change does; returns its path and the arming."""
        path = str(self._ask(door, "stage", **_content(SAVED))["path"])
        self._ask(door, "stage", **_content(OTHER))
        captured = self._ask(door, "capture", files=[path])
        if not captured.get("restorable"):
            raise _NotProvenError(f"a saved file could not be brought back: {captured.get('problems')}")
        writes = [{"path": path, "expect": sha256(SAVED), "staged": sha256(OTHER)}]
        result = self.tools.playbooks.run("apply", self.host, self._variables(path, writes), timeout=PLAY_TIMEOUT)
        armed: Mapping[str, Any] = next(
            (answer["arm"] for answer in result.answers if isinstance(answer.get("arm"), Mapping)), {}
        )
        if not armed.get("armed"):
            raise _NotProvenError("the play came to its end without an armed dead-man")
        if self._equal(door, path):
            raise _NotProvenError("the play came to its end, but the scratch file still holds the saved bytes")
        return path, armed

    def _variables(self, path: str, writes: list[dict[str, str]]) -> dict[str, Any]:
        """What the play is told; the Python is the door's, as for every change."""
        named = str(self.host.variables.get("ansible_python_interpreter", "auto"))
        return {
            "changectl_run": self.lease.run,
            "changectl_generation": self.lease.generation,
            "changectl_writes": writes,
            "changectl_arm": {"nonce": self.lease.nonce, "only": [path]},
            **({"ansible_python_interpreter": self.greeting.executable} if named.startswith("auto") else {}),
            **({"changectl_state_dir": self.state_dir} if self.state_dir else {}),
        }

    def _shorten(self, door: Door) -> float:
        """Let the lease last for two seconds from now on; returns its end by the host's clock since boot."""
        self._take(door, replace(self.lease, seconds=LEASE))
        standing = self._ask(door, "standing")
        held = standing_of(standing, "lease") or {}
        if not held.get("live") or held.get("nonce") != self.lease.nonce or not standing.get("armed"):
            raise _NotProvenError("the host was not armed under our lease any more, before it could run out")
        return float(standing["boot_seconds"]) + float(held["left"])

    def _plays_python(self, door: Door) -> str | None:
        keeper = self._ask(door, "doctor", only=["keeper"]).get("keeper")
        return None if not isinstance(keeper, Mapping) else keeper.get("executable")

    def _wait(self, seconds: float) -> None:
        until = self.tools.clock.monotonic() + seconds
        while (left := until - self.tools.clock.monotonic()) > 0:
            self.tools.stop()
            self.tools.clock.sleep(min(SLICE, left))

    def _open_again(self) -> Door:
        """The way to the host; a link that hiccups is tried again for a while. Raises ContactLost or Refused."""
        until = self.tools.clock.monotonic() + BACK_WITHIN
        while True:
            try:
                return self.tools.doors.open(self.host)
            except ContactLost:
                if self.tools.clock.monotonic() >= until:
                    raise
                self.tools.clock.sleep(SLICE)

    def _fired(self, door: Door) -> Mapping[str, Any]:
        """What the dead-man did, once it is done."""
        until = self.tools.clock.monotonic() + BACK_WITHIN
        while True:
            standing = self._ask(door, "standing")
            fired = standing_of(standing, "fired")
            if fired is None:
                watch = "keeps watch, but slept on" if standing.get("keeper_running") else "is gone"
                raise _NotProvenError(f"the lease ran out and nothing came back: what keeps watch {watch}")
            if fired.get("state") == "done" or fired.get("outcome") == "failed":  # though it goes on trying
                return fired
            if self.tools.clock.monotonic() >= until:
                raise _NotProvenError(
                    f"the dead-man began, and is not done: {fired.get('detail') or 'it does not say why'}"
                )
            self.tools.clock.sleep(SLICE)

    def _judge(self, door: Door, fired: Mapping[str, Any], late: float, path: str) -> None:
        if fired.get("by") != "deadman" or fired.get("outcome") != "restored":
            said = fired.get("detail") or fired.get("outcome")
            raise _NotProvenError(f"the dead-man did not bring the saved bytes back: {said}")
        if not -EARLY <= late <= LATEST:
            raise _NotProvenError(
                f"the dead-man began {late:.2f} s after its deadline; at most {LATEST:.0f} s are right"
            )
        if not self._equal(door, path):
            raise _NotProvenError("the dead-man says that the saved bytes are back, but they are not there")

    def _equal(self, door: Door, path: str) -> bool:
        return bool(self._ask(door, "verify")["files"][path]["equal"])

    # -- and away with it -----------------------------------------------------------------------------------------
    def _take_away(self) -> tuple[str, ...]:
        """Leave nothing; returns what is left all the same, with how it goes."""
        try:
            with closing(self._open_again()) as door:
                self._disarm(door)
                self._ask(door, "forget", generation=self._generation(door))
                with suppress(HostCallError):  # somebody else may have taken the host by now, which is as good
                    self._give_back(door)
                items = self._ask(door, "leftovers").get("items", ())
        except (ContactLost, Refused, HostCallError) as error:
            place = f"{self.state_dir or 'the state folder'}/runs/{self.lease.run}"
            return (f"{self.host.name}: {place} ({error}); take that folder away once nothing is armed there",)
        return tuple(
            f"{item['what']} {item['place']}: {item['how']}" for item in items if item["run"] == self.lease.run
        )

    def _disarm(self, door: Door) -> None:
        """End what keeps watch, if it still does: the file is nobody's."""
        if self._ask(door, "standing").get("armed"):
            self._take_over(door)
            self._ask(door, "disarm", nonce=self.lease.nonce, outcome="accepted")

    def _give_back(self, door: Door) -> None:
        held = standing_of(self._ask(door, "standing"), "lease")
        if held is None or held.get("run") != self.lease.run:
            return
        if not held.get("live") or held.get("nonce") != self.lease.nonce:
            self._take_over(door)
        self._ask(door, "release", nonce=self.lease.nonce)

    def _take_over(self, door: Door) -> None:
        """Take the lease again, above every generation that the host has seen: the dead-man has raised it."""
        generation = self._generation(door) + 1
        self.lease = replace(self.lease, generation=generation, nonce=self.tools.new_nonce(), seconds=PREPARING)
        self._take(door, self.lease)

    def _generation(self, door: Door) -> int:
        standing = self._ask(door, "standing")
        held = standing_of(standing, "lease") or {}
        seen = [standing.get("generation"), held.get("generation") if held.get("run") == self.lease.run else None]
        return max([self.lease.generation, *(number for number in seen if isinstance(number, int))])

    # -- the host -------------------------------------------------------------------------------------------------
    def _take(self, door: Door, lease: Lease) -> None:
        people = {"owner": self.tools.actor, "controller": lease.run}
        self._ask(door, "lease", **lease.as_args(), seconds=lease.seconds, **people)

    def _ask(self, door: Door, call: str, **args: Any) -> dict[str, Any]:
        place = {"state_dir": self.state_dir} if self.state_dir else {}
        given = {"run": self.lease.run, "generation": self.lease.generation, **place, **args}
        return door.call(call, given, timeout=CALL_TIMEOUT)


def _content(data: bytes) -> dict[str, str]:
    return {"sha256": sha256(data), "content": base64.b64encode(data).decode()}


def _between(begin: object, end: object) -> float | None:
    """Seconds between two moments of one clock; None: not told."""
    try:
        return (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(begin))).total_seconds()
    except ValueError:
        return None
