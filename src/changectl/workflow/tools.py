"""Everything a workflow works with, put together in one place (cli/wiring.py) and handed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from changectl.core.ports import Checks, Clock, Doors, Heart, Inventory, Journal, Memory, Playbooks, Records, Reporter
from changectl.workflow.interrupts import Interrupts
from changectl.workflow.secrets import Secrets


@dataclass(frozen=True)
class Tools:
    """The ports of a run."""

    inventory: Inventory
    doors: Doors
    heart: Heart
    playbooks: Playbooks
    journal: Journal
    records: Records
    memory: Memory
    checks: Checks
    reporter: Reporter
    clock: Clock
    interrupts: Interrupts
    generator: Callable[[], bytes]  # the load generator as it travels to the caller's host
    nvml_source: Callable[[], str | None]  # the NVML bindings as they travel to a host
    ask: Callable[[str], bool]  # a yes-or-no question to a person; False where there is no terminal or no answer
    end_orphans: Callable[[str], int]  # run -> how many processes of a dead controller were ended on this machine
    leave: Callable[[str, int], None]  # say it and end this process at once, with that exit code
    new_run: Callable[[str], str]  # service -> a run id that no other controller will make
    secrets: Secrets
    actor: str  # who runs this: user@machine
    version: str
    wait_seconds: float = 0.0  # how long a command waits for somebody else's lock or lease
