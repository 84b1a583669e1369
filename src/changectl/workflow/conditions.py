"""What a measurement is made of, and what was so while it ran: the levels, the job, the fingerprint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core import levels
from changectl.core.conditions import ENVIRONMENT, FILES, SETTINGS, Fingerprint
from changectl.core.digest import sha256
from changectl.core.errors import Refused
from changectl.core.observed import Observed
from changectl.core.plan import Plan
from changectl.core.service import Service
from changectl.core.units import LevelLoad
from changectl.workflow.contact import Contact
from changectl.workflow.secrets import Secrets
from changectl.workflow.target import Target

DEFAULT_SECONDS = 20.0  # per level and phase, where neither service nor plan says anything
WARMUP_REQUESTS = 8
REQUEST_DEADLINE = 120.0  # seconds until a request without an end counts as late
SPARE = 120.0  # seconds beyond its plan that a phase may take before it is given up

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

    def job(self, target: Target, salt: str) -> dict[str, Any]:
        """The load generator's job; holds the token, so it goes through the door and nowhere else."""
        bearer = target.auth.get("bearer")
        size = {"requests": self.requests} if self.requests is not None else {"seconds": self.seconds}
        return {
            "endpoint": target.endpoint,
            "protocol": self.protocol,
            "headers": {"Authorization": f"Bearer {bearer}"} if bearer else {},
            "model": target.service.model.name or "default",
            "workload": list(self.workload),
            "levels": [{"name": name, "streams": load.streams, **size} for name, load in self.levels.items()],
            "salt": salt,
            "seed": self.seed,
            "warmup": {"requests": WARMUP_REQUESTS},
            "deadline": REQUEST_DEADLINE,
        }

    @property
    def expected_seconds(self) -> float | None:
        """What a phase takes; None: its length is a number of requests."""
        return None if self.seconds is None else self.seconds * len(self.levels)

    @property
    def timeout(self) -> float:
        """When a phase is given up."""
        return (self.expected_seconds or 1800.0) + REQUEST_DEADLINE + SPARE

    def facts(self) -> dict[str, Any]:
        """What belongs into the fingerprint."""
        return {
            "workload": self.workload_digest,
            "levels": {name: str(load) for name, load in self.levels.items()},
            "length": {"seconds": self.seconds, "requests": self.requests},
            "seed": self.seed,
            "protocol": self.protocol,
        }


def load_plan(plan: Plan, service: Service, protocol: str, workload: Sequence[Mapping[str, Any]]) -> LoadPlan:
    """The load that the plan and the service ask for.

    Raises:
        Refused: the service is live, does not allow synthetic load, and has no level `low`.
    """
    own, given = plan.conditions, service.conditions
    requests = levels.requests(plan, service)
    seconds = own.seconds if own.seconds is not None else given.seconds
    return LoadPlan(
        protocol=protocol,
        workload=workload,
        workload_digest=sha256(json.dumps(list(workload), sort_keys=True).encode()),
        levels=_allowed(plan, service),
        seconds=None if requests is not None else float(seconds or DEFAULT_SECONDS),
        requests=requests,
        seed=(own.seed if own.seed is not None else given.seed) or 0,
    )


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


def fingerprint(
    contact: Contact,
    observed: Observed,
    version: str | None,
    load: LoadPlan,
    secrets: Secrets,
) -> Fingerprint:
    """What was so during a phase; values of variables as salted digests, since they may be secret."""
    process = observed.process
    argv, environ = (process.argv or [], process.environ or {}) if process else ([], {})
    engine = contact.target.engine
    settings = engine.running(argv, environ)
    known_variables = {setting.env for setting in engine.settings if setting.env in environ}
    words = [word for word in argv if word not in settings.values()]
    return Fingerprint({
        SETTINGS: {name: secrets.redactor.text(value) for name, value in settings.items()},
        ENVIRONMENT: {
            name: secrets.digest(value)
            for name, value in environ.items()
            if name not in VOLATILE and name not in known_variables
        },
        FILES: {path: facts.sha256 for path, facts in observed.files.items()},
        "command": secrets.digest("\0".join(_without_values(words, contact))),
        "model": _model_digest(contact),
        "engine": contact.target.engine.name,
        "engine_version": version or "not exposed",
        "kernel": contact.host_answer.get("kernel"),
        "cpus": json.dumps(contact.host_answer.get("cpus"), sort_keys=True),
        "boot": contact.hello.boot_id,
        "limits": _limits(process.limits if process else None),
        "caller": f"{contact.target.address.name} (the instance's own host, loopback)",
        "endpoint": contact.target.endpoint,
        **load.facts(),
    })  # fmt: skip


def _without_values(words: Sequence[str], contact: Contact) -> list[str]:
    """The command without the changed flag, so that the declared change is not seen a second time here."""
    setting = contact.wanted.setting
    spellings = {*setting.flags, setting.negation} if setting else set()
    return [word for word in words if word.partition("=")[0] not in spellings]


def _limits(limits: Mapping[str, Any] | None) -> str | None:
    return None if limits is None else json.dumps(limits, sort_keys=True)


def _model_digest(contact: Contact) -> str:
    lines = sorted(f"{file.path} {file.size} {file.sha256}" for file in contact.model.files)
    return sha256("\n".join(lines).encode())
