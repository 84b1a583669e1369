"""A stage for stories: a service on fake hosts, a plan, and the run of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.workflow.fake_doors import FakeDoors, FakePlaybooks
from tests.workflow.fake_heart import FakeHeart
from tests.workflow.fake_host import FakeHost
from tests.workflow.fake_shared import SharedHost, share
from tests.workflow.world import (
    FakeChecks,
    FakeClock,
    FakeInventory,
    FakeJournal,
    FakeMemory,
    FakeRecords,
    FakeReporter,
    World,
)

from changectl import kinds
from changectl.core.declared import plan as plans
from changectl.core.declared import service as services
from changectl.core.declared.placing import Placed, place, place_caller
from changectl.core.ports import HostAddress
from changectl.workflow.apply import Order, RunEnd, apply
from changectl.workflow.interrupts import Interrupts
from changectl.workflow.secrets import Secrets
from changectl.workflow.tools import Tools

SERVICE = """\
version: 1
service: chat
class: interactive
instances: {group: gpu, each: {endpoint: "http://127.0.0.1:8080"}}
engine: llamacpp
manager: {systemd: {unit: chat.service}}
config: [{unit: chat.service, format: flags}, {file: /etc/chat.env, format: env}]
model: {path: /srv/m.gguf, name: chat}
conditions: {workload: w.jsonl, levels: {normal: 8 streams}}
limits: {load_on_live: true}
ready: {deadline: 30s}
"""
STEP = "  - change: {parameter: {name: parallel, to: %s}}\n    expect: neutral\n"
BETTER, WORSE = 8, 1  # slots; 8 streams share them


def plan_text(*slots: int, extra: str = "") -> str:
    """A plan of one step for each number of slots; `extra` goes into the last step."""
    steps = "".join(STEP % number for number in slots)
    return f"version: 1\nservice: chat\nreason: a story\neffort: quick\nsteps:\n{steps}{extra}"


class Left(BaseException):
    """The process ended at once; nothing catches it, as nothing would run any more."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def _machines(names: Sequence[str], world: World) -> dict[str, FakeHost | SharedHost]:
    """The hosts of instances; of those that are called HOST:PORT a host may carry several."""
    on: dict[str, list[str]] = {}
    for name in names:
        on.setdefault(name.partition(":")[0], []).append(name)
    return {host: share(world, host, named) if ":" in named[0] else FakeHost(host, world) for host, named in on.items()}


def _placed_on(names: Sequence[str], text: str) -> str:
    """A service file for instances, those called HOST:PORT with a unit and an environment file each."""
    if not any(":" in name for name in names):
        return text
    lines = []
    for name in names:
        host, _, port = name.partition(":")
        stem, port = f"chat-{port}" if port else "chat", port or "8080"
        own = f'{{stem: {stem}, port: "{port}"}}'
        lines.append(f'  - {{host: {host}, endpoint: "http://127.0.0.1:{port}", vars: {own}}}\n')
    text = text.replace("unit: chat.service", 'unit: "{{ stem }}.service"').replace(
        "/etc/chat.env", '"/etc/{{ stem }}.env"'
    )
    group = 'instances: {group: gpu, each: {endpoint: "http://127.0.0.1:8080"}}\n'
    assert group in text
    return text.replace(group, "".join(["instances:\n", *lines]))


@dataclass
class Stage:
    """Hosts and ports of one story; change them before `apply`. A name may be HOST:PORT: one of several there."""

    names: tuple[str, ...] = ("gpu1",)
    variables: dict[str, Any] = field(default_factory=dict)
    service_text: str = SERVICE
    world: World = field(default_factory=World)
    answer: bool = False  # what a person says when asked
    asked: list[str] = field(default_factory=list)
    workload: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "p", "prompt": "once"}])

    def __post_init__(self) -> None:
        machines = _machines(self.names, self.world)
        self.hosts = {one.name: one for machine in machines.values() for one in machine.instances}
        self.before = {name: host.digests() for name, host in self.hosts.items()}
        self.addresses = [HostAddress(name, {"ansible_host": name, **self.variables}) for name in machines]
        self.journal, self.records = FakeJournal(self.world), FakeRecords(self.world)
        self.reporter, self.memory = FakeReporter(self.world), FakeMemory(journal=self.journal)
        self.checks, self.interrupts = FakeChecks(self.world), Interrupts(lambda: self.world.seconds)
        self.playbooks, self.doors = FakePlaybooks(machines), FakeDoors(machines)
        self.heart = FakeHeart(self.world)
        self.runs = 0
        self.service = services.load(
            _placed_on(self.names, self.service_text), "chat.yml", engines=("llamacpp", "vllm")
        )
        self.tools = Tools(
            inventory=FakeInventory(self.addresses), doors=self.doors, heart=self.heart, playbooks=self.playbooks,
            journal=self.journal, records=self.records, memory=self.memory, checks=self.checks,
            reporter=self.reporter, clock=FakeClock(self.world), interrupts=self.interrupts,
            generator=lambda: b"zip", nvml_source=lambda: None, ask=self._ask, leave=self._leave,
            end_orphans=self._end_orphans, new_run=self._new_run,
            secrets=Secrets(b"salt", lambda tripwire: None), actor="kim@desk", version="0",
        )  # fmt: skip

    @property
    def host(self) -> FakeHost:
        """The first host."""
        return self.hosts[self.names[0]]

    @property
    def placed(self) -> tuple[Placed, ...]:
        return place(self.service, self.tools.inventory.hosts)

    def order(self, text: str, checks: tuple[str, ...] = ()) -> Order:
        plan = plans.load(text, "plan.yml", kinds=kinds.specs(), levels=("normal",))
        caller = place_caller(self.service, self.tools.inventory.host)
        return Order(
            plan, "plan.yml", text, "digest", self.service, self.placed, self.workload, {1: checks}, caller=caller
        )

    def apply(self, *slots: int, extra: str = "", checks: tuple[str, ...] = ()) -> RunEnd:
        return apply(self.order(plan_text(*slots, extra=extra), checks), self.tools)

    def unchanged(self) -> bool:
        """Whether every file of every host is as it was when the story began."""
        return all(host.digests() == self.before[name] for name, host in self.hosts.items())

    def serving_as_before(self) -> bool:
        """Whether the saved files are there, and a process that was started on them runs."""
        return self.unchanged() and all(
            host.process is not None and not host.stale and host.process.argv[-1] == "4" for host in self.hosts.values()
        )

    def fail_at(self, number: int, error: Callable[[], BaseException], only: str = "") -> None:
        """Raise at the given port call, counted from 1 among those whose name begins with `only`."""
        seen = 0

        def count(name: str) -> None:
            nonlocal seen
            seen += name.startswith(only)
            if seen == number and name.startswith(only):
                raise error()

        self.world.before = count

    def _ask(self, question: str) -> bool:
        self.world.passing("ask")
        self.asked.append(question)
        return self.answer

    def _end_orphans(self, run: str) -> int:
        self.world.passing(f"orphans {run}")
        return 0

    def _leave(self, text: str, exit_code: int) -> None:
        raise Left(text, exit_code)

    def _new_run(self, service: str) -> str:
        self.runs += 1
        return f"R{self.runs}"
