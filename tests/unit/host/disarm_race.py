"""A controller that keeps its change at the very moment at which its lease runs out; run as a process of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from changectl_host import Failure, dispatch, keeper
from changectl_host.state import Run, boot_seconds

SHORT = 0.08  # seconds of the lease that is raced against
SPREAD = 0.006  # seconds before and after the moment at which both ends are as likely
STEP = 0.001  # seconds by which that moment is looked for anew after each round; on a busy machine dead-men wake late


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Race:
    """Rounds on one host folder and one run."""

    def __init__(self, folder: Path) -> None:
        self.state, self.path = folder / "state", folder / "a.conf"
        self.path.write_bytes(b"old")
        self.generation, self.nonce, self.late = 1, "capture", 0.0
        self.call("lease", seconds=60, owner="o", controller="c")
        self.call("capture", files=[str(self.path)])
        self.call("stage", sha256=digest(b"new"), content=base64.b64encode(b"new").decode())

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        common = {"run": "R-1", "state_dir": str(self.state), "generation": self.generation, "nonce": self.nonce}
        return dispatch(name, {**common, **args})

    def round(self, number: int) -> str:
        """One race; "kept" or "restored", and anything else is a third end."""
        self.generation = self.call("standing")["generation"] + 1
        self.nonce = f"n{number}"
        self.call("lease", seconds=60, owner="o", controller="c")
        self.call("arm", only=[str(self.path)])
        self.call("write", path=str(self.path), expect=digest(b"old"), staged=digest(b"new"))
        deadline = boot_seconds() + self.call("lease", seconds=SHORT, owner="o", controller="c")["left"]
        moment = deadline + self.late + random.uniform(-SPREAD, SPREAD)
        while boot_seconds() < moment:
            time.sleep(0 if moment - boot_seconds() < 0.002 else 0.001)
        try:
            said = self.call("disarm", outcome="kept")
        except Failure as failure:
            self.late -= STEP
            return self.refused(failure)
        self.late += STEP
        if said != {"disarmed": True, "changed": True, "left_behind": []}:
            return f"disarm said {said}"
        return self.kept()

    def refused(self, failure: Failure) -> str:
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            now = self.call("standing")
            fired = now["fired"]
            if fired is not None and fired["nonce"] == self.nonce and fired["state"] == "done":
                break
            time.sleep(0.005)
        facts = (failure.reason, fired["outcome"], self.path.read_bytes(), now["armed"])
        decided = now["disarmed"] is not None and now["disarmed"]["nonce"] == self.nonce
        return "restored" if facts == ("lease_lost", "restored", b"old", None) and not decided else repr((facts, now))

    def kept(self) -> str:
        time.sleep(0.05)  # a dead-man that acted all the same would be seen
        now = self.call("standing")
        fired = now["fired"] is not None and now["fired"]["nonce"] == self.nonce
        facts = (self.path.read_bytes(), fired, now["armed"], keeper.running(Run("R-1", str(self.state))))
        if facts != (b"new", False, None, None) or now["disarmed"]["outcome"] != "kept":
            return repr((facts, now))
        self.generation += 1  # the lease is over by now; the next owner puts the file back
        self.nonce = f"after {self.nonce}"
        self.call("lease", seconds=60, owner="o", controller="c")
        self.call("restore")
        return "kept"


if __name__ == "__main__":
    race = Race(Path(sys.argv[1]))
    sys.stdout.write(json.dumps([race.round(number) for number in range(int(sys.argv[2]))]))
