"""What a doctor sees of one host: what its program tells, how it was reached, and how the proof went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from changectl.core.observed_base import Answer

State = Literal["ok", "advice", "failed", "unknown"]
Trouble = Literal["unreachable", "sudo", "python"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at on a host.

    Attributes:
        name: a stable word.
        state: `advice` is not in order, but no change fails for it.
        figure: what was measured or said.
        todo: what a person does about it; empty: nothing.
        required: whether a change needs it.
        because: the check for whose sake this one could not be looked at.
    """

    name: str
    state: State
    figure: str
    todo: str = ""
    required: bool = True
    because: str = ""

    @property
    def finding(self) -> bool:
        """Whether a change on this host would be refused for it, or might be."""
        return self.required and self.state in ("failed", "unknown")


class Folder(Answer):
    """A folder of ours on a host, tried; words for what went wrong, empty where nothing did, None: not tried."""

    path: str
    exists: bool
    place: str  # the folder itself, or the nearest above it
    problem: str | None = None
    writes: str = ""
    attributes: str | None = None
    acl: str | None = None
    label: str | None = None
    file_system: str | None = None
    options: Sequence[str] = ()
    free: int | None = None
    total: int | None = None
    free_inodes: int | None = None
    inodes: int | None = None  # 0: this file system does not count them
    stale: Sequence[str] = ()


class Temporary(Answer):
    """The folder for what programs need for a moment."""

    path: str | None = None
    problem: str | None = None
    file_system: str | None = None
    options: Sequence[str] = ()
    free: int | None = None


class Systemd(Answer):
    """systemd's own state."""

    state: str | None = None
    failed: Sequence[str] = ()
    reload: list[str] | None = None  # units whose files changed since they were read; None: not told
    transient: str | None = None  # empty: a unit in memory ran; None: not tried
    problem: str | None = None


class HostTold(Answer):
    """The host call `doctor`."""

    folders: list[Folder] = Field(min_length=1)
    temporary: Temporary
    selinux: str | None = None
    systemd: Systemd | None = None


class Greeting(Answer):
    """Of the host call `hello` what matters here."""

    python: str
    executable: str
    uid: int | None = None
    user: str | None = None


class Leftover(Answer):
    """One thing of ours that lies or runs on a host."""

    what: str
    place: str
    run: str | None = None
    removable: bool = False
    how: str = ""
    armed: bool = False
    live: bool = False
    owner: str | None = None
    controller: str | None = None  # of a lease: the run that took it; another one where a run is taken back
    size: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """How the proof on a scratch file went.

    Attributes:
        state: `proven`; `failed`: the dead-man, or what has to come before it, does not work; `not_now`: somebody else
            has the host; `lost`: the host did not answer afterwards.
        why: what went wrong, in words.
        late: seconds after its deadline at which the dead-man began.
        seconds: how long it took to bring the saved bytes back.
        keeper: what kept watch: systemd or process.
        reboot_safe: whether a restart of the host would not stop it; `unsafe_why` says why not.
        executable: the Python that the plays run on.
        left: what of the proof is still there, with how to remove it.
        begun: whether anything was written on the host.
    """

    state: Literal["proven", "failed", "not_now", "lost"]
    why: str = ""
    late: float | None = None
    seconds: float | None = None
    keeper: str | None = None
    reboot_safe: bool | None = None
    unsafe_why: str = ""
    executable: str | None = None
    left: tuple[str, ...] = ()
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything about one host; None always means "not known".

    Attributes:
        local: this machine itself; no network is between.
        become: whether the inventory wants another user than the one who logs in.
        password: whether a password for that was given.
        unchecked: what in the inventory keeps Ansible from checking the host's key; empty: nothing.
        trouble: what kept us from talking to it, and `said`: in its own words.
        clock: seconds by which the host's clock is ahead of the controller's.
        clock_doubt: seconds by which that may be wrong.
        ended: the runs that the controller's record has an end of, each with how it ended, in words.
        sends_only: whether load is sent from there and nothing is ever changed.
    """

    local: bool
    become: bool
    password: bool
    unchecked: str
    trouble: Trouble | None = None
    said: str = ""
    greeting: Greeting | None = None
    told: HostTold | None = None
    leftovers: Sequence[Leftover] | None = None
    clock: float | None = None
    clock_doubt: float = 0.0
    proof: Proof | None = None
    ended: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""  # why the host, though reached, did not tell the rest
    sends_only: bool = False


def key_unchecked(variables: Mapping[str, Any]) -> str:
    """The variable that keeps Ansible from checking a host's key; empty: none does."""
    for name in ("ansible_host_key_checking", "ansible_ssh_host_key_checking"):
        if str(variables.get(name, "true")).lower() in ("false", "no", "0", "off"):
            return f"{name}: {variables[name]}"
    for name in ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words = str(variables.get(name) or "").replace("=", " ").replace('"', " ").replace("'", " ").lower().split()
        for word, following in pairwise(words):
            if word.removeprefix("-o") == "stricthostkeychecking":
                return f"{name}: StrictHostKeyChecking={following}" if following in ("no", "off") else ""
    return ""
