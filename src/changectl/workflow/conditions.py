"""What a measurement is made of, and what was so while it ran: the levels, the job, the fingerprint."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from changectl.core.declared import levels
from changectl.core.declared.measured_path import ENDPOINT, MeasuredPath, measured_path
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.digest import sha256
from changectl.core.errors import Refused
from changectl.core.judging import exactness
from changectl.core.judging.conditions import COMMAND, ENVIRONMENT, FILES, MODEL, PROGRAM, SETTINGS, Fingerprint
from changectl.core.measuring.level_size import STAGGER, LevelSize
from changectl.core.observed import FileFacts, Hello, Model, Observed, ProcessFacts
from changectl.core.ports import HostAddress
from changectl.core.trial.precision import Enough
from changectl.core.units import LevelLoad
from changectl.workflow.command_words import shown_words
from changectl.workflow.contact import Contact
from changectl.workflow.secrets import Secrets
from changectl.workflow.target import Target

WARMUP_REQUESTS = 8  # at the least; never fewer than two for each stream
OPEN_WARMUP_STREAMS = 8  # at the most: how many requests of an open level will run at once, nobody knows beforehand
REQUEST_DEADLINE = 120.0  # seconds until a request without an end counts as late
TRYING_TOKENS = 4  # of the answer to the one request that shows whether a caller gets any
SPARE = 120.0  # seconds beyond its plan, and beyond its last sign of life, before a phase is given up

# Variables that systemd makes anew for every start: they never say anything about the configuration.
VOLATILE = frozenset({
    "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
    "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_PID", "PWD", "OLDPWD", "SHLVL", "_",
})  # fmt: skip


@dataclass(frozen=True)
class LoadPlan:
    """The same load for every phase of a step."""

    protocol: str
    workload: Sequence[Mapping[str, Any]]
    workload_digest: str
    levels: Mapping[str, LevelLoad]
    seconds: float | None
    requests: int | None
    seed: int
    caller: HostAddress | None = None  # the host that sends it; None: each instance's own
    path: MeasuredPath = ENDPOINT
    enough: Mapping[str, Enough] = field(default_factory=dict)  # levels that end as soon as they are so precise

    def endpoint(self, target: Target) -> str:
        """Where the load is sent: the instance's own address, or the one that leads through the balancer."""
        return target.endpoint if self.path == ENDPOINT else target.through_balancer

    def caller_name(self, target: Target) -> str:
        """The host that sends the load to an instance, as the inventory calls it."""
        return target.address.name if self.caller is None else self.caller.name

    def job(self, target: Target, salt: str) -> dict[str, Any]:
        """The load generator's job; holds the token, so it goes through the door and nowhere else."""
        bearer = target.auth.get("bearer")
        return {
            "endpoint": self.endpoint(target),
            "protocol": self.protocol,
            "headers": {"Authorization": f"Bearer {bearer}"} if bearer else {},
            "model": target.service.model.name or "default",
            "workload": list(self.workload),
            "levels": [{"name": name, **_job_size(size), **self._may_end(name)} for name, size in self.sizes.items()],
            "salt": salt,
            "seed": self.seed,
            "warmup": self._warmup(),
            "deadline": REQUEST_DEADLINE,
            "stagger": STAGGER,
            "self_test": dict(exactness.LIMITS),
        }

    @property
    def quality_prompts(self) -> int:
        """How many requests have their answers compared."""
        return sum(bool(entry.get("quality")) for entry in self.workload)

    def trying_job(self, target: Target) -> dict[str, Any]:
        """One request with a few tokens of answer: whether all of it works from where it is sent."""
        first = {name: value for name, value in self.workload[0].items() if name != "expect"}  # of a whole answer
        if "max_tokens" in first:
            first["max_tokens"] = min(TRYING_TOKENS, first["max_tokens"])
        one = {"workload": [first], "levels": [{"name": "try", "streams": 1, "requests": 1}], "warmup": {}}
        return {**self.job(target, "try"), **one, "self_test": None}

    def _may_end(self, level: str) -> dict[str, Any]:
        return {"enough": self.enough[level].to_json()} if level in self.enough else {}

    def _warmup(self) -> dict[str, int]:
        """A closed level as wide as the widest; in place of an open one, what comes to it within a second."""
        wide = [load.streams or min(OPEN_WARMUP_STREAMS, math.ceil(load.rate or 1)) for load in self.levels.values()]
        return {"streams": max(wide), "requests": max(WARMUP_REQUESTS, 2 * max(wide))}

    @property
    def sizes(self) -> Mapping[str, LevelSize]:
        """How much of each level is sent."""
        return {
            name: LevelSize(load, self.seconds, self.requests, may_end=name in self.enough)
            for name, load in self.levels.items()
        }

    @property
    def expected_seconds(self) -> float | None:
        """What a phase takes at most; None: a closed level gets a number of requests, and nobody knows how long."""
        lasts = [size.lasts for size in self.sizes.values()]
        return None if None in lasts else math.fsum(each or 0.0 for each in lasts)

    @property
    def timeout(self) -> float:
        """Seconds without a sign of life after which a phase is given up: the generator gives one every second."""
        return (self.expected_seconds or 0.0) + REQUEST_DEADLINE + SPARE

    def facts(self) -> dict[str, Any]:
        """What belongs into the fingerprint."""
        return {
            "workload": self.workload_digest,
            "levels": {name: str(load) for name, load in self.levels.items()},
            "length": f"{self.seconds:g} s" if self.requests is None else f"{self.requests} requests",
            "seed": self.seed,
            "protocol": self.protocol,
            "path": self.path,
        }


def load_plan(
    plan: Plan,
    service: Service,
    protocol: str,
    workload: Sequence[Mapping[str, Any]],
    caller: HostAddress | None = None,
) -> LoadPlan:
    """The load that the plan and the service ask for.

    Raises:
        Refused: the service is live, does not allow synthetic load, and has no level `low`.
    """
    own, given = plan.conditions, service.conditions
    return LoadPlan(
        protocol=protocol,
        workload=workload,
        workload_digest=sha256(json.dumps(list(workload), sort_keys=True).encode()),
        levels=_allowed(plan, service),
        seconds=levels.seconds(plan, service),
        requests=levels.requests(plan, service),
        seed=(own.seed if own.seed is not None else given.seed) or 0,
        caller=caller,
        path=measured_path(plan, service),
    )


def _job_size(size: LevelSize) -> dict[str, Any]:
    """How the load generator is told how much of a level to send."""
    if size.load.open:
        return {"arrivals": "poisson", "requests": size.count, "seconds": size.lasts}
    length = {"requests": size.requests} if size.requests is not None else {"seconds": size.seconds}
    return {"streams": size.load.streams, **length}


def _allowed(plan: Plan, service: Service) -> Mapping[str, LevelLoad]:
    """The levels that will be measured. Raises Refused when the service allows none of them."""
    allowed = levels.measured(plan, service)
    if not allowed:
        raise Refused(
            f"service {service.service} may be serving, and none of its levels is called `{levels.LOW}`: "
            "add one, or write limits: {load_on_live: true}",
            reason="load_not_allowed",
        )
    return allowed


@dataclass(frozen=True)
class Present:
    """What was read from the instance during a phase, anew for every phase."""

    hello: Hello
    host: Mapping[str, Any]
    observed: Observed
    model: str | None  # one digest over its files
    version: str | None  # the engine's; None: not exposed
    caller: Mapping[str, Any]  # who sent the load, and on what kind of host


def fingerprint(contact: Contact, present: Present, load: LoadPlan | None, secrets: Secrets) -> Fingerprint:
    """What was so during a phase; values of variables as salted digests, since they may be secret.

    Args:
        contact: the instance and the declared change.
        present: what was read during the phase; None stays None, so that nothing unread looks equal.
        load: the same load for all phases; None: users send it.
        secrets: the redactor.
    """
    observed, host = present.observed, present.host
    process, target = observed.process, contact.target
    return Fingerprint({
        SETTINGS: _settings(contact, process, secrets),
        ENVIRONMENT: _environment(contact, process, secrets),
        FILES: {path: _file(facts) for path, facts in observed.files.items()},
        COMMAND: _command(contact, process, secrets),
        "user": None if process is None or process.uid is None else [process.uid, *sorted(process.gids or [])],
        PROGRAM: None if process is None else process.runs,
        MODEL: present.model,
        "engine": target.engine.name,
        "engine_version": present.version,
        "kernel": host.get("kernel"),
        "cpus": _text(host.get("cpus")),
        "boot": present.hello.boot_id,
        "limits": _text(process.limits) if process is not None else None,
        **present.caller,
        "endpoint": target.endpoint if load is None else load.endpoint(target),
        "port_held_by_the_service": target.manager.owns_port(observed, target.endpoint),
        **(load.facts() if load is not None else {}),
    })  # fmt: skip


def _settings(contact: Contact, process: ProcessFacts | None, secrets: Secrets) -> dict[str, str] | None:
    if process is None or not process.argv:
        return None
    settings = contact.target.engine.running(process.argv, process.environ or {})
    return {name: secrets.redactor.text(value) for name, value in settings.items()}


def _environment(contact: Contact, process: ProcessFacts | None, secrets: Secrets) -> dict[str, str] | None:
    """Variables other than those that are settings of the engine, which stand among the settings already."""
    if process is None or process.environ is None:
        return None
    settings = {setting.env for setting in contact.target.engine.settings if setting.env}
    return {
        name: secrets.digest(value)
        for name, value in process.environ.items()
        if name not in VOLATILE and name not in settings
    }


def _command(contact: Contact, process: ProcessFacts | None, secrets: Secrets) -> list[str] | None:
    """The command without the changed setting's own words, so that the declared change is not seen a second time."""
    if process is None or not process.argv:
        return None
    return shown_words(contact.target.engine.command_without(process.argv, contact.wanted.setting), secrets)


def _file(facts: FileFacts) -> str | None:
    return "not there" if facts.exists is False else facts.sha256


def _text(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True) if value else None


def model_digest(model: Model) -> str | None:
    """One digest over all files of a model; None: there are none, or one could not be read."""
    if not model.files or any(file.sha256 is None for file in model.files):
        return None
    lines = sorted(f"{file.path} {file.size} {file.sha256}" for file in model.files)
    return sha256("\n".join(lines).encode())
