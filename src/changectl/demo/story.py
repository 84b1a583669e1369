"""What the demo shows, step by step, and what it holds each step against."""

from __future__ import annotations

import shlex
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changectl.demo.commands import Changectl
from changectl.demo.project import free_port, write_project
from changectl.demo.server import NotAsPromised, Server

KEPT, REVERTED = "changeplans/0001-more-slots.yml", "changeplans/0002-one-slot.yml"
NO_EVIDENCE = 5  # the exit code of a change that was taken back since the measurement cannot be trusted
REFUSED, NO_BASELINE = 3, "baseline_invalid"  # not even tried: the measurement before it cannot be trusted
TRIES = 4
PROMISED_FACTOR = 3.0  # how much longer users wait for the first token, at least, with one slot


@dataclass
class Demo:
    """The actors: a project folder, its server, and changectl."""

    folder: Path
    server: Server
    changectl: Changectl

    @classmethod
    def at(cls, folder: Path) -> Demo:
        """Write the project into the folder.

        Raises:
            InputError: the folder is not free, or a package is missing.
        """
        Server(folder, 0).stop()  # left by an earlier demo that was killed
        port = free_port()
        write_project(folder, port)
        return cls(folder, Server(folder, port), Changectl(folder))

    def tell(self) -> None:
        """Show everything.

        Raises:
            NotAsPromised: something ended otherwise than it should.
        """
        self._service()
        kept = self._kept()
        self._reverted()
        self._record(kept)

    def _service(self) -> None:
        heading("A service and two plans")
        say(f"""The folder {self.folder} was filled with a project: an inventory, a service, two plans, a tiny model
            that was just written. Reading it all touches no host:""")
        self.changectl.run("validate", KEPT, REVERTED)
        # Not earlier: a process started in the very moment of writing its files might not have read them.
        seconds = self.server.start()
        say(f"""The service is llama.cpp's real HTTP server, started by a script; it loaded in {seconds:.1f} s. Its
            settings:""")
        quote(self.server.arguments())

    def _kept(self) -> str:
        heading("A change that is kept")
        say("""Twenty users ask at once, and only two answers are written at a time. The plan gives the server sixteen
            slots. That has a price, since each answer is written more slowly; `accept` says how much is acceptable.""")
        quote((self.folder / KEPT).read_text())
        say("changectl measures, changes that one thing, measures again under the same conditions, and judges:")
        self.apply(KEPT, expected=0)
        story = self._last()
        self._expect(story, "kept", "no_gross_harm", slots=16)
        before, after = first_token(story)
        say(f"""Kept, exit code 0. Half of the users waited {before * 1000:.0f} ms or more for the first token; now that
            is {after * 1000:.0f} ms.""")
        return str(story["run"]["run"])

    def _reverted(self) -> None:
        heading("A change that is taken back")
        say("""Now somebody wants one slot only and expects nobody to notice. No limit is moved for this plan: the
            defaults decide.""")
        quote((self.folder / REVERTED).read_text())
        saved = self.server.arguments()
        self.apply(REVERTED, expected=4)
        story = self._last()
        self._expect(story, "reverted", "regressed", slots=16)
        if self.server.arguments() != saved:
            raise NotAsPromised("the settings file is not what it was before the change that was taken back")
        before, after = first_token(story)
        if after < PROMISED_FACTOR * before:
            words = f"the first token came after {after:.3f} s instead of {before:.3f} s"
            raise NotAsPromised(f"{words}: that is not {PROMISED_FACTOR:g} times later")
        say(f"""Taken back, exit code 4: users would have waited {after / before:.0f} times as long for the first
            token. The saved file is back byte for byte, the server runs with it again and has answered; all that was
            checked.""")

    def _record(self, kept: str) -> None:
        heading("The record")
        say("What was changed, and what became of it:")
        self.changectl.run("history")
        say("The whole story of the change that was kept:")
        self.changectl.run("show", kept)

    def apply(self, plan: str, *, expected: int) -> None:
        """Apply a plan; again where something else kept the machine so busy that nobody can tell.

        Raises:
            NotAsPromised: it ended with another exit code, or nobody could tell four times.
        """
        for left in reversed(range(TRIES)):
            code = self.changectl.run("apply", plan, expected=(expected, NO_EVIDENCE, REFUSED) if left else (expected,))
            if code == expected:
                return
            if code == NO_EVIDENCE:
                say("""Exit code 5: something else disturbed the measurement, so nobody can tell whether the change is
                    good. changectl keeps nothing without evidence and has restored the old state. Once more:""")
                continue
            reason = self._last()["steps"][0]["reason"]
            if reason != NO_BASELINE:
                raise NotAsPromised(f"changectl apply {plan} ended with exit code {code} ({reason})")
            say("""Exit code 3: something else disturbed the measurement before the change, so there would be nothing to
                compare with. changectl has changed nothing. Once more:""")

    def _last(self) -> dict[str, Any]:
        runs = self.changectl.read("history", "--limit", "1")["runs"]
        return self.changectl.read("show", str(runs[0]["run"]))

    def _expect(self, story: dict[str, Any], outcome: str, verdict: str, *, slots: int) -> None:
        step = story["steps"][0]
        found = (step["outcome"], step["verdict"])
        if found != (outcome, verdict):
            raise NotAsPromised(f"the record says {found[0]} ({found[1]}); promised was {outcome} ({verdict})")
        if f"--parallel {slots} " not in self.server.arguments():
            raise NotAsPromised(f"the settings file does not say --parallel {slots}: {self.server.arguments()}")
        if self.server.pid() is None:
            raise NotAsPromised("the server does not run")

    def next_steps(self) -> None:
        """Say what a curious person may do now."""
        heading("What to try next")
        changectl = shlex.join(self.changectl.command)
        say(f"Everything that was started is stopped. The project stays in {self.folder}:")
        quote(f"""cd {shlex.quote(str(self.folder))}
            service/run-chat start                  # the service again
            {changectl} plan {REVERTED}    # what would happen; changes nothing
            {changectl} show RUN --html run.html     # the whole story as one page with drawings
            {changectl} diff RUN           # RUN: the beginning of a name in `history` is enough
            {changectl} revert RUN         # take a kept change back
            service/run-chat stop
            """)


def first_token(story: dict[str, Any]) -> tuple[float, float]:
    """The median time to the first token before and after, in seconds.

    Raises:
        NotAsPromised: the record does not hold it.
    """
    for row in story["steps"][0]["rows"]:
        if row["metric"] == "ttft_user_p50" and row["before"] and row["after"]:
            return float(row["before"]), float(row["after"])
    raise NotAsPromised("the record does not hold the time to the first token before and after")


def heading(text: str) -> None:
    """A line that opens a part."""
    sys.stdout.write(f"\n== {text} ==\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A paragraph."""
    sys.stdout.write(textwrap.fill(" ".join(text.split()), 100) + "\n\n")
    sys.stdout.flush()


def quote(text: str) -> None:
    """A file or commands, set off."""
    lines = [line.strip() if line.startswith(" " * 12) else line for line in text.rstrip().splitlines()]
    sys.stdout.write("\n".join(f"    {line}" for line in lines) + "\n\n")
    sys.stdout.flush()
