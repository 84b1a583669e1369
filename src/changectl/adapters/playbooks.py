"""ansible-runner, fenced: a private folder per job, an allow-listed environment, our own cancelling, no leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from changectl.adapters.environment import for_ansible
from changectl.adapters.orphans import MARK
from changectl.core.errors import ContactLost, HostCallError
from changectl.core.ports import HostAddress, Json, PlayResult

if TYPE_CHECKING:
    from ansible_runner.config.runner import RunnerConfig
    from ansible_runner.runner import Runner

BECOME_PROMPT = r"BECOME password.*:\s*?$"


def unsafe(value: Any) -> Any:
    """Arguments in Ansible's own mark for text that must never be taken as a template.

    Extra variables are trusted otherwise, and a path that a managed host told could then run commands here.
    """
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, Mapping):
        return {key: unsafe(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [unsafe(part) for part in value]
    return value


def never() -> bool:
    """The default cancel callback: nobody asks to stop."""
    return False


@dataclass
class _Watched:
    """What the events of one job said."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    unreachable: str | None = None
    stats: dict[str, Any] | None = None
    output: list[str] = field(default_factory=list)

    def see(self, event: dict[str, Any]) -> bool:
        """ansible-runner's event handler; False: nothing is written to disk."""
        data = event.get("event_data", {})
        result = data.get("res") or {}
        match event.get("event"):
            case "runner_on_ok" if "answer" in result:
                self.answers.append(result["answer"])
            case "runner_on_failed" if not data.get("ignore_errors"):
                self.failure = result
            case "runner_on_unreachable":
                self.unreachable = str(result.get("msg", "unreachable"))
            case "playbook_on_stats":
                self.stats = data
            case "error" | "verbose" if event.get("stdout"):
                self.output.append(str(event["stdout"]))
        return False


@dataclass(frozen=True)
class RunnerPlaybooks:
    """Fulfils core.ports.Playbooks with ansible-runner.

    `cancel` is asked every second; True ends the job (and its process group).
    """

    source: Path  # the operator's inventory
    playbooks: Path
    vault_ids: Sequence[str] = ()
    become_password: str | None = field(default=None, repr=False)
    cancel: Callable[[], bool] = never
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        """Run `playbooks/PLAY.yml` on one host; it counts only if the final stats arrived and name the host."""
        folder = Path(tempfile.mkdtemp(prefix="changectl-"))  # mkdtemp makes it 0700
        try:
            watched, rc = self._job(folder, play, host, arguments, timeout)
        finally:
            _end_workers(folder)
            shutil.rmtree(folder, ignore_errors=True)
        return _result(watched, play, host.name, rc)

    def _job(
        self, folder: Path, play: str, host: HostAddress, arguments: Json, timeout: float
    ) -> tuple[_Watched, int | None]:
        runner_config, runner_class = _ansible_runner()
        variables = folder / "variables.json"
        variables.write_text(json.dumps(unsafe({**arguments, "changectl_host_name": host.name})))
        config = runner_config(
            private_data_dir=str(folder),
            playbook=str(self.playbooks / f"{play}.yml"),
            inventory=str(self.source.resolve()),
            cmdline=self._options(variables),
            passwords=self._passwords(),
            suppress_env_files=True,
            quiet=True,
            timeout=max(1, int(timeout)),
            envvars={"ANSIBLE_HOST_KEY_CHECKING": "True"},
        )
        config.prepare()
        # Said afterwards: without a settings file ansible-runner takes its own defaults, whatever it was given.
        config.pexpect_timeout, config.suppress_output_file = 1, True
        config.env = {**self._environment(config.env), MARK: str(arguments.get("changectl_run", ""))}
        watched = _Watched()
        runner = runner_class(config, event_handler=watched.see, cancel_callback=self.cancel)
        runner.run()
        return watched, runner.rc

    def _options(self, variables: Path) -> str:
        words = ["-e", f"@{variables}"]
        for vault in self.vault_ids:
            words += ["--vault-id", vault]
        if self.become_password is not None:
            words.append("--ask-become-pass")
        return shlex.join(words)

    def _passwords(self) -> OrderedDict[str, str] | None:
        if self.become_password is None:
            return None
        return OrderedDict({BECOME_PROMPT: self.become_password})

    def _environment(self, prepared: Mapping[str, str]) -> dict[str, str]:
        """Ours, plus the few variables by which ansible-runner finds its event plugin and artifact folder."""
        environment = for_ansible(self.environ, self.playbooks, Path(sys.executable))
        wanted = ("ANSIBLE_CALLBACK_PLUGINS", "ANSIBLE_STDOUT_CALLBACK", "AWX_ISOLATED_DATA_DIR", "RUNNER_OMIT_EVENTS",
                  "RUNNER_ONLY_FAILED_EVENTS", "ORIGINAL_STDOUT_CALLBACK")  # fmt: skip
        environment.update({name: prepared[name] for name in wanted if name in prepared})
        return environment


def _ansible_runner() -> tuple[type[RunnerConfig], type[Runner]]:
    """The classes of ansible-runner; heavy, so only when a play runs.

    The package itself is imported first: a second thread then waits until it is whole. Who imports only its modules,
    which are ready before the package is, finds `ansible_runner.plugins` to be something else than the plugins.
    """
    import ansible_runner

    return ansible_runner.RunnerConfig, ansible_runner.Runner


def _end_workers(folder: Path) -> None:
    """End what is left of a job that was cut off: Ansible's workers have sessions of their own, so they outlive it.

    They are known by the job's private folder on their command line. What they had begun on a host goes on to its end
    there; the host program's lock and generations are made for that.
    """
    mark = f"@{folder}/".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "cmdline").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)


def _result(watched: _Watched, play: str, host: str, rc: int | None) -> PlayResult:
    """Judge a job by its events, never by its exit status alone."""
    if watched.failure is not None:
        failure = watched.failure
        message = str(failure.get("msg") or failure.get("module_stderr") or "a task failed without a message")
        reason, details = str(failure.get("reason", "play_failed")), failure.get("details")
        raise HostCallError(f"{host}: {message}", reason=reason, details=details if isinstance(details, dict) else None)
    if watched.unreachable is not None:
        raise ContactLost(f"{host} is unreachable: {watched.unreachable}")
    if watched.stats is None or rc is None:
        detail = " ".join(watched.output[-3:])
        raise ContactLost(f"{host}: play {play} ended without its final report (status {rc}). {detail}".rstrip())
    if host not in watched.stats.get("processed", {}):
        raise HostCallError(f"{host}: play {play} did not reach this host", reason="host_not_in_stats")
    if rc != 0:
        raise HostCallError(f"{host}: play {play} ended with status {rc}", reason="play_failed")
    return PlayResult(tuple(watched.answers))
