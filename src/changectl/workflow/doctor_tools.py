"""A doctor's patient and instruments: the host to be looked at, and the ports it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from changectl.core.ports import Clock, Doors, HostAddress, Playbooks


@dataclass(frozen=True)
class Patient:
    """A host that is to be looked at.

    Attributes:
        host: which.
        state_dir: the state folder of the services on it; None: the default one.
        sends_only: nothing is ever changed there: it sends load, so it has to be reached and to have a Python.
    """

    host: HostAddress
    state_dir: str | None = None
    sends_only: bool = False


@dataclass(frozen=True)
class Instruments:
    """The ports of a doctor.

    Attributes:
        stop: called where it does no harm to stop; raises when somebody asks for the end.
        tell: says at once what a person has to know although it all ends here.
        clean: takes secret values out of what is shown.
        password: whether a sudo password was given.
        ended: the runs that the record has an end of, each with how it ended, in words.
    """

    doors: Doors
    playbooks: Playbooks
    clock: Clock
    new_name: Callable[[], str]  # of the run on the host, that no other controller makes
    new_nonce: Callable[[], str]
    stop: Callable[[], None]
    tell: Callable[[str], None]
    clean: Callable[[str], str]
    actor: str
    password: bool = False
    ended: Mapping[str, str] = field(default_factory=dict)
