"""One running service whose host is put into one state after the other, and what `changectl plan` then says of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.lab.desk import Desk, Ended
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import describe_service
from tests.lab.harness.services import LlamaService

from changectl.probes.edited_since_start import SLACK

MORE_SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"
HTTP_THREADS = "{environment: {name: LLAMA_ARG_THREADS_HTTP, to: '5'}}"
STAND_IN = "/usr/local/bin"  # comes before /usr/bin on the host


#: Limits in both batches, so that a rule between them can be broken.
FLAGS = {"--ctx-size": "4096", "--parallel": "4", "--threads": "1", "--batch-size": "256", "--ubatch-size": "128"}


def service_for_prechecks(host: LabHost) -> LlamaService:
    """Install a service that no check has anything against, but for a limit that is not set."""
    service = LlamaService(host, flags=FLAGS)
    service.install()
    return service


@dataclass(frozen=True)
class Checked:
    """The pre-checks of the one instance, by name; `code` is the command's exit code."""

    code: int
    checks: Mapping[str, Mapping[str, Any]]

    def state(self, name: str) -> str:
        """`passed`, `failed`, `unknown` or `not_applicable`."""
        return str(self.checks[name]["state"])

    def said(self, name: str) -> str:
        """Figure, detail and hint of a check."""
        return " ".join(str(self.checks[name][part]) for part in ("figure", "detail", "hint"))

    def refused(self, name: str, state: str = "failed", *saying: str) -> None:
        """Assert that this check alone would refuse, in that state, and that its text names all of `saying`."""
        self.is_in(name, state, *saying)
        assert (self.checks[name]["refuses"], self.code) == (True, 3), self.checks[name]

    def advised(self, name: str, state: str = "failed", *saying: str) -> None:
        """Assert that this check tells something and refuses nothing."""
        self.is_in(name, state, *saying)
        assert self.checks[name]["refuses"] is False, self.checks[name]

    def is_in(self, name: str, state: str, *saying: str) -> None:
        """Assert the state and the words."""
        assert self.state(name) == state, self.checks[name]
        for words in saying:
            assert words in self.said(name), self.checks[name]

    @property
    def refusing(self) -> list[str]:
        """The checks that refuse."""
        return [name for name, check in self.checks.items() if check["refuses"]]


@dataclass(frozen=True)
class Bench:
    """The service, and the desk from which it is looked at."""

    service: LlamaService
    desk: Desk

    def describe(self, **replaced: str) -> Bench:
        """Write the service file anew, with the values in `replaced` in place of those of the same keys."""
        entries = re.split(r"^(?=\w)", describe_service(self.service), flags=re.MULTILINE)
        kept = [entry for entry in entries if entry.split(":")[0] not in replaced]
        text = "".join([*kept, *(f"{key}: {value}\n" for key, value in replaced.items())])
        self.desk.lay_out([self.service], texts={self.service.name: text})
        return self

    def variables(self, variables: Mapping[str, Any]) -> Bench:
        """Write the inventory anew, with further variables."""
        self.desk.lay_out([self.service], variables=variables)
        return self

    def look(self, change: str = MORE_SLOTS) -> Ended:
        """Run `changectl plan`."""
        return self.desk.preview(self.desk.plan(change))

    def check(self, change: str = MORE_SLOTS) -> Checked:
        """Run `changectl plan`, which must get as far as its pre-checks."""
        ended = self.look(change)
        assert "steps" in ended.document, ended
        step = ended.document["steps"][0]
        assert not step["refusal"], step
        return Checked(ended.code, {check["name"]: check for check in step["instances"][0]["checks"]})

    def refusal(self, change: str = MORE_SLOTS) -> str:
        """Run `changectl plan`, which must end before its pre-checks, and return why."""
        return str(self.look(change).expect(3).document["steps"][0]["refusal"])

    def sh(self, script: str, *words: str) -> str:
        """Run a shell script on the host as root; raise LabError if it fails."""
        return self.service.host.run(["sh", "-ec", script, "sh", *words]).stdout

    @contextmanager
    def edited(self, path: str, edit: Callable[[str], str]) -> Iterator[None]:
        """Edit a file as with an editor; afterwards it is the old one again, with its times."""
        host, kept = self.service.host, "/var/tmp/kept-by-the-test"
        self.sh('cp -a -- "$(readlink -f "$1")" "$2"', path, kept)
        try:
            host.run(["sh", "-c", 'cat > "$1"', "sh", path], stdin=edit(host.read_file(path).decode()))
            yield
        finally:
            self.sh('cp -a -- "$2" "$(readlink -f "$1")"; systemctl daemon-reload', path, kept)

    @contextmanager
    def drop_in(self, text: str) -> Iterator[None]:
        """Let the unit have a drop-in, loaded, without a restart of the service."""
        folder = f"{self.service.unit_file}.d"
        self.service.host.write_file(f"{folder}/lab.conf", text)
        self.sh("systemctl daemon-reload")
        try:
            yield
        finally:
            self.sh('rm -r "$1"; systemctl daemon-reload', folder)

    @contextmanager
    def done(self, script: str, undo: str, *words: str) -> Iterator[None]:
        """Run a script on the host, and another one afterwards, whatever happens."""
        self.sh(script, *words)
        try:
            yield
        finally:
            self.sh(undo, *words)

    @contextmanager
    def stand_in(self, program: str, text: str) -> Iterator[None]:
        """Put a script before a program of the host; `@REAL@` in it is the program itself."""
        path = f"{STAND_IN}/{program}"
        self.service.host.write_file(path, text.replace("@REAL@", f"/usr/bin/{program}"), mode="0755")
        try:
            yield
        finally:
            self.service.host.run(["rm", path])

    def restart(self) -> None:
        """Start the service on what its files say now, and wait until it answers and what is edited now is newer."""
        self.sh('systemctl reset-failed "$1" || true; systemctl restart "$1"', self.service.unit)
        self.service.wait_ready()
        time.sleep(SLACK)

    def running(self) -> bool:
        """Whether the service is active."""
        state = self.service.host.run(["systemctl", "is-active", self.service.unit], check=False).stdout
        return state.strip() == "active"
