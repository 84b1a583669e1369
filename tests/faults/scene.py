"""A running service for tests of the judge, and hands that change it as a run would, or as nobody should."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.faults import strikes
from tests.faults.bench import NEW_SLOTS, LocalBench, settings_text
from tests.faults.checker import Expected, Judged, judge
from tests.faults.told import read_journal

from changectl.store import open_store

RUN = "20261130-080000-chat-abcd"
NEW = settings_text({"parallel": NEW_SLOTS})
KILLED = -signal.SIGKILL


class Scene:
    """The service, its project, and what was so before anything happened."""

    def __init__(self, folder: Path) -> None:
        self.bench = LocalBench(folder).lay_out()
        self.bench.start()
        self.expected: Expected = self.bench.expected("kept")

    def write(self, text: str) -> None:
        self.bench.settings.write_text(text)

    def restart(self) -> None:
        self.stop()
        self.bench.start()

    def stop(self) -> None:
        strikes.end_engine(self.bench)
        while self.bench.engines():
            time.sleep(0.01)

    def journal(self, *kinds: str, outcome: str = "", run: str = RUN, **body: str) -> None:
        """Write these events with the product's own journal; every end says the outcome."""
        record = self.bench.database.parent
        with open_store(self.bench.database, record / "key") as store:
            for kind in kinds:
                ending = {"outcome": outcome} if kind.endswith(".closed") else {}
                store.journal.append(run, kind, {"service": "chat", **ending, **body}, step=1)

    def disarmed(self, outcome: str, run: str = RUN) -> None:
        """The record of the host that the dead-man was put off, and why."""
        folder = self.bench.state / "runs" / f"{run}.1"
        folder.mkdir(parents=True)
        (folder / "disarmed.json").write_text(f'{{"outcome": "{outcome}"}}')

    def judged(self, exit_code: int = KILLED, *, final: bool = False) -> Judged:
        return judge(
            self.expected, self.bench.reach().look(), read_journal(self.bench.database), exit_code, final=final
        )
