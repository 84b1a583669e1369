"""Where on the hosts a run's way back lies, and which dead-men are still to act, by the record."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.history.events import ARM, CAPTURE, DISARM, LEASE, intent, number_of, outcome, text_of
from changectl.core.ports import Event

HOST_ACTED = "host.acted"


@dataclass(frozen=True, slots=True)
class HostFolder:
    """A run's folder on a host: what was saved there before one step, and the program that brings it back.

    Attributes:
        host: the instance.
        step: the step before which it was saved.
        name: the folder's name.
        state_dir: the folder that `runs/` lies in; None: an older record, which does not tell.
        armed: whether a dead-man was armed there and nobody has decided since.
        lease: seconds without a sign of life after which it acts; None: not recorded.
    """

    host: str
    step: int
    name: str
    state_dir: str | None
    armed: bool = False
    lease: float | None = None

    @property
    def by_hand(self) -> str | None:
        """The command that brings everything back on the host itself; None: the folder's place is not known."""
        if self.state_dir is None:
            return None
        return f"python3 {shlex.quote(f'{self.state_dir}/runs/{self.name}/program.pyz')} restore --restart"


def host_folders(events: Iterable[Event]) -> list[HostFolder]:
    """The folders of a run on its hosts, in the order in which they were filled.

    Args:
        events: of the run, and of whatever was to take it back, oldest first.
    """
    found: dict[tuple[str, str], HostFolder] = {}
    for event in events:
        body = event.body
        key = (text_of(body, "host"), text_of(body, "folder"))
        if event.kind == outcome(CAPTURE) and body.get("ok") is not False and key[1]:
            found[key] = HostFolder(key[0], event.step, key[1], text_of(body, "state_dir") or None)
        elif key in found:
            found[key] = _after(found[key], event.kind, body)
    return list(found.values())


def _after(folder: HostFolder, kind: str, body: Mapping[str, Any]) -> HostFolder:
    if kind == intent(LEASE):
        return replace(folder, lease=number_of(body, "seconds"))
    if kind == outcome(ARM) and body.get("armed") is True:
        return replace(folder, armed=True)
    decided = kind == outcome(DISARM) and body.get("ok") is not False
    if decided or (kind == HOST_ACTED and text_of(body, "state") == "done"):
        return replace(folder, armed=False)
    return folder
