"""The program's own folder on the host: a folder per run, the host lock, generations, the list of what was done."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import time
from typing import Any, Dict, List, Optional

from . import system
from .failure import Failure, from_os_error
from .locks import check_private, default_root

FORMAT = 1
# Where several instances of a service share this host, each has a folder of its own in that of the run: RUN/2.
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(/[0-9]{1,4})?\Z")
_INSTANCE = re.compile(r"[0-9]{1,4}\Z")


def whole(name: Any) -> str:
    """The run that a folder's name belongs to: RUN of RUN/2, and of RUN itself."""
    return str(name).partition("/")[0]


def boot_seconds() -> float:
    """Seconds since boot, as process start times are counted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """The kernel's random name for this boot; empty where /proc has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return ""


class Run:
    """One run's folder.

    Args:
        name: the run's id; RUN/N for one of several instances on this host, which keeps its own snapshot.
        root: the state folder; None: the default one.

    Raises:
        Failure: `bad_arguments` when the id is not one of ours; `unsafe_state` when somebody else could write there.
    """

    def __init__(self, name: Any, root: Optional[str] = None) -> None:
        if not isinstance(name, str) or not _RUN.match(name):
            raise Failure("bad_arguments", f"{name!r} is not a run id")
        self.name = name
        self.root = root or default_root()
        runs = os.path.join(self.root, "runs")
        self.folder = os.path.join(runs, name)
        for place in (self.root, runs, os.path.join(runs, self.whole), self.folder):
            check_private(place)
        self.generation: Optional[int] = None  # of the caller that may change things now

    @classmethod
    def of(cls, args: Dict[str, Any]) -> Run:
        """The run that a call's arguments name."""
        return cls(args.get("run"), args.get("state_dir"))

    @property
    def whole(self) -> str:
        """The run that holds the host: the same for all its instances here."""
        return whole(self.name)

    @property
    def instance(self) -> str:
        """The number of the instance that the folder is for; empty: the run has one folder here."""
        return self.name.partition("/")[2]

    def folders(self) -> List[Run]:
        """Every folder that the run has, or may have, on this host: its own, and one for each instance."""
        base = os.path.join(self.root, "runs", self.whole)
        try:
            inside = [entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            inside = []
        numbers = sorted((name for name in inside if _INSTANCE.match(name)), key=int)
        return [Run(name, self.root) for name in (self.whole, *(f"{self.whole}/{number}" for number in numbers))]

    def path(self, *parts: str) -> str:
        """A path inside the run's folder."""
        return os.path.join(self.folder, *parts)

    def make(self, *parts: str) -> str:
        """Create a folder (0700) inside the run's folder, with what is missing above it; returns its path."""
        target = self.path(*parts)
        try:
            os.makedirs(self.root, mode=0o700, exist_ok=True)
            place = self.root
            for part in os.path.relpath(target, self.root).split("/"):
                place = os.path.join(place, part)
                with contextlib.suppress(FileExistsError):
                    os.mkdir(place, 0o700)
        except OSError as error:
            raise from_os_error(error, f"creating {target}") from error
        return target

    def exists(self) -> bool:
        """Whether this host knows the run."""
        return os.path.isfile(self.path("run.json"))

    def header(self) -> Dict[str, Any]:
        """run.json; empty when there is none. Of a damaged one, what the list of events knows too.

        Raises:
            Failure: `newer_format` when a later version of this program wrote it.
        """
        try:
            return read_record(self.path("run.json")) or {}
        except Failure as failure:
            if failure.reason != "damaged_state":
                raise
            return {"format": FORMAT, "run": self.name, "generation": self._last_generation()}

    def _last_generation(self) -> int:
        seen = [event.get("generation") for event in self.events()]
        return max((number for number in seen if isinstance(number, int)), default=0)

    def record(self, event: str, **facts: Any) -> None:
        """Append one line to events.jsonl; it is on disk when this returns."""
        line = {"at": timestamp(), "boot": boot_id(), "boot_seconds": boot_seconds(), "event": event, **facts}
        line.setdefault("generation", self.generation)
        append_line(self.path("events.jsonl"), line)

    def events(self) -> List[Dict[str, Any]]:
        """Everything recorded, oldest first; a line torn by a kill is left out."""
        return read_lines(self.path("events.jsonl"))


def append_line(path: str, line: Dict[str, Any]) -> None:
    """Append one JSON object to a list of ours; it is on disk when this returns."""
    data = json.dumps(line, sort_keys=True).encode() + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data  # the last writer was killed in mid-line
        system.write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: str) -> List[Dict[str, Any]]:
    """The JSON objects of a list of ours, oldest first; a line torn by a kill is left out."""
    found = []
    try:
        with open(path, "rb") as source:
            for line in source:
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict):
                        found.append(entry)
    except FileNotFoundError:
        return []
    return found


def timestamp() -> str:
    """Now, ISO 8601 in UTC with microseconds, by this host's clock."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")


def read_json(path: str) -> Optional[Dict[str, Any]]:
    """A JSON object from a file of ours; None when it does not exist.

    Raises:
        Failure: `damaged_state` when it is not a JSON object.
    """
    try:
        with open(path, "rb") as source:
            content = json.loads(source.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Failure("damaged_state", f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise Failure("damaged_state", f"{path} does not hold a JSON object")
    return content


def read_record(path: str, newest: int = FORMAT) -> Optional[Dict[str, Any]]:
    """A record of ours that carries its format, of which `newest` is known; None when it does not exist.

    Raises:
        Failure: `damaged_state`; `newer_format` when a later version of this program wrote it.
    """
    content = read_json(path)
    number = FORMAT if content is None else content.get("format", FORMAT)
    if not isinstance(number, int):
        raise Failure("damaged_state", f"{path} has the format {number!r}")
    if number > newest:
        raise Failure("newer_format", f"{path} was written by a newer changectl: format {number}")
    return content


def save_json(path: str, content: Dict[str, Any]) -> None:
    """Replace a JSON file of ours, whole or not at all."""
    system.save(path, json.dumps(content, sort_keys=True).encode() + b"\n")


def generation(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {generation}, the number of the run's present owner; None where this host does not know the run."""
    return {"generation": Run.of(args).header().get("generation")}
