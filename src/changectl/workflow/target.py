"""One instance of a service on one host, with the door to it open: the reading and watching part of all workflows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from changectl.core.declared.service import Service
from changectl.core.engine import Engine, Pages, ProbeRequest, pages_from
from changectl.core.errors import Refused
from changectl.core.manager import Manager
from changectl.core.observed import Hello, Model, Observed, ProcessFacts, Status
from changectl.core.ports import Door, HostAddress, Progress
from changectl.core.settings import Carrier

CALL_TIMEOUT = 60.0  # seconds for a call that only looks
DIGEST_TIMEOUT = 600.0  # seconds without a sign of life; a full digest reads every byte, and says so as it gets on


@dataclass(frozen=True)
class Target:
    """One endpoint, its manager target, and how to talk about it."""

    name: str
    address: HostAddress
    service: Service  # rendered for this host
    endpoint: str
    engine: Engine
    manager: Manager
    door: Door
    number: int = 0  # which one it is of several instances on its host, from 1; 0: the only one there

    @property
    def promise(self) -> str:
        """What its dead-man does."""
        return "restores the saved configuration"

    @property
    def manager_argument(self) -> dict[str, Any]:
        """The manager as host calls take it."""
        return self.service.manager.as_host_argument()

    @property
    def port(self) -> int | None:
        """The endpoint's port."""
        parts = urlsplit(self.endpoint)
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme)

    @property
    def through_balancer(self) -> str:
        """The base URL that leads through the balancer to this instance alone.

        Raises:
            Refused: its service declares none.
        """
        declared = self.service.instances
        found = declared[0].through_balancer if isinstance(declared, tuple) else declared.each.through_balancer
        if found is None:
            raise Refused(f"{self.name} has no `through_balancer`", reason="no_path")
        return found

    @property
    def auth(self) -> dict[str, str]:
        """How requests are authorised, as engines take it; secret."""
        return {} if self.service.auth is None else {"bearer": self.service.auth.bearer.get_secret_value()}

    @property
    def files(self) -> list[str]:
        """The configuration files that the service names itself; a manager's own files come by themselves."""
        return [carrier.file for carrier in self.service.carriers if carrier.file]

    @property
    def model_excluded(self) -> list[str]:
        """Files in the model folder that are configuration: declared ones may change without changing the model."""
        root = self.service.model_path.rstrip("/") + "/"
        inside = [path[len(root) :] for path in self.files if path.startswith(root)]
        return [*self.service.model.exclude, *inside]

    def with_state(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a host call with the service's own state folder, if it has one."""
        return {**args, "state_dir": self.service.state_dir} if self.service.state_dir else dict(args)

    def ask(
        self, call: str, args: Mapping[str, Any], *, timeout: float = CALL_TIMEOUT, progress: Progress | None = None
    ) -> dict[str, Any]:
        """One host call through the door."""
        return self.door.call(call, self.with_state(args), timeout=timeout, progress=progress)

    def hello(self) -> Hello:
        """Who the host is."""
        return Hello.read(self.ask("hello", {}))

    def host_answer(self, *, also: Sequence[str] = (), since: float | None = None) -> dict[str, Any]:
        """The host's specification as it came.

        Args:
            also: further paths whose free space is asked for.
            since: by the host's clock; from then on, what the kernel's log says of killed processes and broken GPUs.
        """
        paths = dict.fromkeys([self.service.model_path, self.state_path, *self.files, *also])
        return self.ask("host", {"paths": list(paths), **({} if since is None else {"since": since})})

    @property
    def state_path(self) -> str:
        """Where the run's folder lies on the host."""
        return self.service.state_dir or "/var/lib/changectl"

    def inspect(self) -> Observed:
        """Manager, process and configuration files as they are now."""
        args: dict[str, Any] = {"manager": self.manager_argument, "files": self.files, "port": self.port}
        return Observed.read(self.ask("inspect", args))

    def model(
        self, reader: ProcessFacts | None, known: Mapping[str, Any] | None = None, progress: Progress | None = None
    ) -> Model:
        """The model's manifest with full digests, cached by size and time.

        Args:
            reader: the running process, whose user has to be able to read the files.
            known: path -> [size, mtime_ns, sha256] of files whose digest is known.
            progress: told how far the reading is.
        """
        args = {
            "path": self.service.model_path,
            "exclude": self.model_excluded,
            "deep": True,
            "known": dict(known or {}),
            "uid": reader.uid if reader else None,
            "gids": reader.gids if reader else None,
        }
        return Model.read(self.ask("model", args, timeout=DIGEST_TIMEOUT, progress=progress))

    def pages(self, *, answer: bool = True, within: float | None = None, only: str | None = None) -> Pages:
        """Ask the engine itself.

        Args:
            answer: also for a few real tokens.
            within: seconds for each page at most.
            only: the one page that is wanted; none comes back where the engine has no such page.
        """
        requests = self.requests(only, answer=answer)
        if not requests:
            return {}
        if within is not None:
            requests = [replace(one, timeout=min(within, one.timeout)) for one in requests]
        longest = sum(request.timeout for request in requests)
        said = self.ask("probe", {"requests": [one.as_args() for one in requests]}, timeout=longest + 10)
        return pages_from(said)

    def requests(self, only: str | None = None, *, answer: bool = False) -> list[ProbeRequest]:
        """The requests that `pages` sends; they hold the token."""
        found = self.engine.probes(self.endpoint, self.service.model.name, self.auth, answer=answer)
        return [one for one in found if only in (None, one.name)]

    def status(self, cursor: str | None = None, run: str | None = None, *, from_start: bool = False) -> Status:
        """How the manager's process is, and its log since `cursor`.

        Args:
            cursor: a place in the log; None: its latest lines.
            run: also see what this run is starting.
            from_start: also read what the running service logged first.
        """
        args = {"manager": self.manager_argument, "cursor": cursor, "log_file": self.service.log_file, "run": run,
                "from_start": from_start}  # fmt: skip
        return Status.read(self.ask("status", args))

    def close(self) -> None:
        """Close the door; what goes wrong there changes nothing any more."""
        with contextlib.suppress(Exception):
            self.door.close()

    def carriers(self) -> list[Carrier]:
        """Where values live, strongest first."""
        return list(self.service.carriers)
