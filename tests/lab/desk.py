"""An operator's desk: a project folder with an inventory, and the installed `changectl` run in it as a person would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import describe_service, write_inventory
from tests.lab.harness.services import LlamaService
from tests.lab.harness.vllm_service import VllmService

CONSOLE_SCRIPT = Path(sys.executable).parent / "changectl"
PROMPTS = "".join(
    f'{{"id": "story-{number}", "prompt": "Story number {number} begins", "max_tokens": 24}}\n' for number in range(12)
)
#: Short, and enough: a level needs 20 good answers to be judged.
REQUESTS = 24
#: For tests of what is done and proven, not of speed: limits that a busy machine keeps, too. As `more` of a plan.
FAR_LIMITS = (
    "    accept: {ttft_user: <= 20s, tpot: <= 5s, e2e_user: <= 60s, rps_ok: '>= 0.1 rps', out_tok_s: '>= 1 tok/s'}\n"
)
#: Limits that a busy machine keeps, too: what these tests are about is not the speed of the machine they run on.
ANY_FIGURES = "{ttft_user: <= 60s, tpot: <= 10s, e2e_user: <= 60s, rps_ok: '>= 0.01 rps', out_tok_s: '>= 0.01 tok/s'}"


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed."""
        try:
            document: dict[str, Any] = json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"not one JSON document (exit {self.code}): {self.out!r}\n{self.err}") from error
        return document

    def expect(self, code: int) -> Ended:
        """Return itself; raise AssertionError with what was said if the exit code is another one."""
        assert self.code == code, f"exit code {self.code} instead of {code}\n{self._told()}\n{self.err}"
        return self

    def _told(self) -> str:
        """The end of each step where the output is the document of a run, and else all of it."""
        try:
            document = json.loads(self.out)
            ends = [f"{step['outcome']}, {step['reason']}: {step['text']}" for step in document["steps"]]
        except (ValueError, KeyError, TypeError):
            return self.out
        return "\n".join([str(document.get("reason")), *ends])


@dataclass
class Desk:
    """One project of one operator: `folder` holds hosts.yml, services/, workloads/ and the plans."""

    folder: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def lay_out(
        self,
        services: Sequence[LlamaService | VllmService],
        *,
        user: str = "root",
        levels: str = "{normal: 4 streams}",
        more: str = "",
        variables: Mapping[str, Any] | None = None,
        texts: Mapping[str, str] | None = None,
        others: Sequence[LabHost] = (),
    ) -> Desk:
        """Write the inventory; `texts` replaces service files by name, `more` is appended to those it does not.

        `others` are hosts beside those of the services.
        """
        described = {
            service.name: (texts or {}).get(service.name) or describe_service(service, levels=levels, more=more)
            for service in services
        }
        hosts: dict[str, LabHost] = {service.host.name: service.host for service in services}
        self.home.mkdir(parents=True, exist_ok=True)
        write_inventory(
            self.folder,
            list(hosts.values()),
            user=user,
            others=others,
            services=described,
            workloads={f"{service.name}.jsonl": PROMPTS for service in services},
            variables=variables,
        )
        return self

    def ask(self, *prompts: str, tokens: int, service: str = "chat") -> None:
        """Let a service be asked something else, with answers of so many tokens."""
        entries = ({"id": f"p{n}", "prompt": text, "max_tokens": tokens} for n, text in enumerate(prompts))
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (self.folder / "workloads" / f"{service}.jsonl").write_text(lines)

    def plan(self, *changes: str, service: str = "chat", requests: int = REQUESTS, more: str = "") -> str:
        """Write a plan with one step per change (the YAML after `change:`), and return its file's name."""
        steps = "".join(f"  - change: {change}\n    expect: neutral\n{more}" for change in changes)
        name = f"plan-{len(list(self.folder.glob('plan-*.yml')))}.yml"
        (self.folder / name).write_text(
            f"version: 1\nservice: {service}\nreason: a test of the lab\neffort: quick\n"
            f"conditions: {{requests: {requests}}}\nsteps:\n{steps}"
        )
        return name

    def run(self, *words: str, timeout: float = 150) -> Ended:
        """Run the installed console script and wait for its end."""
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                out, err = process.communicate()
                raise AssertionError(f"changectl {' '.join(words)} does not end\n{out}\n{err}") from None
        return Ended(process.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the installed console script; nothing of this machine's own configuration reaches it."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8", **self.environment}
        return subprocess.Popen(
            [str(CONSOLE_SCRIPT), *words],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def apply(self, plan: str, timeout: float = 150, words: Sequence[str] = ()) -> Ended:
        """Apply a plan, with the result as a document; `words` are further options."""
        return self.run("apply", "-i", "hosts.yml", "--json", *words, plan, timeout=timeout)

    def measured(self, plan: str, code: int, tries: int = 3, timeout: float = 150, words: Sequence[str] = ()) -> Ended:
        """Apply a plan that measures; once more when this machine was too busy for the load generator itself."""
        for left in reversed(range(tries)):
            ended = self.apply(plan, timeout, words)
            if ended.code == code or not left or "did not keep up" not in ended.out:
                break
        return ended.expect(code)

    def keep(self, change: str) -> Ended:
        """Apply one change that is kept whatever the figures are: for tests that are not about them."""
        return self.measured(self.plan(change, more=f"    accept: {ANY_FIGURES}\n"), 0)

    def show(self, run: str) -> dict[str, Any]:
        """Return the story of a run as `show --json` tells it."""
        return self.run("show", "--json", run).expect(0).document

    def preview(self, plan: str) -> Ended:
        """Run `changectl plan`, with the result as a document."""
        return self.run("plan", "-i", "hosts.yml", "--json", plan)

    def revert(self, run: str) -> Ended:
        """Take a run back, with the result as a document."""
        return self.run("revert", "-i", "hosts.yml", "--json", run)


def wait_for(condition: Callable[[], bool], what: str, timeout: float = 60) -> None:
    """Wait until a condition holds; raise AssertionError if it does not in time."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s in vain: {what}"
        time.sleep(0.05)
