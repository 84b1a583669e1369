"""What the controller itself has of a run's saved configuration, for the day when a host has lost its own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from posixpath import normpath
from typing import Any

from changectl.core.history.events import CAPTURE, outcome
from changectl.core.observed import FileFacts, Observed
from changectl.core.ports import Event

FORMAT = 1  # of a copy


@dataclass(frozen=True)
class SnapshotCopy:
    """The copy of one instance's saved state, before one step.

    Attributes:
        run: the run.
        step: the step before which it was saved.
        instance: the instance.
        digest: by which the encrypted copy is found.
    """

    run: str
    step: int
    instance: str
    digest: str


@dataclass(frozen=True)
class SavedFile:
    """One configuration file as it was saved.

    Attributes:
        path: where it was found, by the name that the service file gave it.
        place: the file itself, where the path led over links.
        facts: size, owner, mode and attributes.
        data: the bytes; None: there was no such file.
    """

    path: str
    place: str
    facts: FileFacts
    data: bytes | None = field(repr=False)

    @property
    def inside(self) -> str:
        """The path below a folder: whatever a host told, it does not lead out of that."""
        return normpath(f"/{self.place}").lstrip("/")

    def put_back(self, source: str) -> str | None:
        """The command that puts it back on its host, from `source` there; attributes are for a person to add.

        None: there was no such file. What stands there now, on a host set up anew for example, may be a stranger's.
        """
        if self.data is None:
            return None
        told = {"-o": self.owner, "-g": self.group, "-m": self.mode}
        options = [word for name, value in told.items() if value is not None for word in (name, value)]
        return shlex.join(["install", *options, source, self.place])

    @property
    def owner(self) -> str | None:
        """The owner's name, else number; None: not known."""
        return _name(self.facts.owner, self.facts.uid)

    @property
    def group(self) -> str | None:
        """The group's name, else number; None: not known."""
        return _name(self.facts.group, self.facts.gid)

    @property
    def mode(self) -> str | None:
        """The mode in octal digits; None: not known."""
        return None if self.facts.mode is None else f"{self.facts.mode & 0o7777:04o}"


def _name(name: str | None, number: int | None) -> str | None:
    return name or (None if number is None else str(number))


def kept_copies(run: str, events: Sequence[Event], step: int | None) -> list[SnapshotCopy]:
    """The copies that a run made, in order; of one step alone if that is asked for."""
    return [
        SnapshotCopy(run, event.step, str(event.body["host"]), str(event.body["copy"]))
        for event in events
        if event.kind == outcome(CAPTURE) and event.body.get("copy") and step in (None, event.step)
    ]


def read_copy(plain: bytes) -> tuple[list[SavedFile], dict[str, Any]]:
    """A copy's files, and all else that it tells: the process as it ran, the model's files, the host.

    Raises:
        ValueError: it is not a copy of ours, it is of a newer format, or no file system can hold a file of its.
    """
    document = json.loads(plain)
    if document["format"] != FORMAT:
        raise ValueError(f"it is of format {document['format']}, and this changectl reads {FORMAT}")
    observed = Observed.read(document["observed"])
    rest = {name: value for name, value in document.items() if name != "observed"}
    told = dict(document["observed"])
    told["files"] = {path: _without_content(facts) for path, facts in told.get("files", {}).items()}
    found = list(_files(observed))
    for file in found:
        if "\0" in file.place or not _is_text(file.place):
            raise ValueError(f"no file can have the path {file.place!r}")
    return found, {**rest, "observed": told}


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:  # half a character
        return False
    return True


def _files(observed: Observed) -> Iterator[SavedFile]:
    for path, facts in observed.files.items():
        yield SavedFile(path, facts.resolved or path, facts, facts.data if facts.exists else None)


def _without_content(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "content"}
