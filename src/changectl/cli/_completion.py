"""What a shell completes: runs, services, outcomes, verdicts and plans, read fast and without leaving a trace.

A shell asks at every press of a key, so nothing heavy is loaded: the record is read with Python's own SQLite, and what
cannot be read at once is simply not offered. Arguments are known by their names, so that a new command has it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from sqlite3 import Connection

_PATIENCE = 0.2  # seconds that a reader waits for a writer
_DATABASE = ".changectl/changectl.db"  # where the project file does not say otherwise
_MOST_FILES = 500  # that are looked at in search of plans
_HEAD = 20_000  # bytes in which a plan says `steps:`


def attach(command: click.Command) -> click.Command:
    """Teach a command's parameters, and those of its own commands, what may stand there; returns the same command."""
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        attach(inner)
    for parameter in command.params:
        given, words = parameter.type, _WORDS.get(parameter.name or "")
        if words is not None and isinstance(given, click.types.StringParamType):
            parameter.type = _Word(words)
        elif parameter.name in ("plan", "plans") and isinstance(given, click.Path):
            parameter.type = _Plan(given.exists, given.file_okay, given.dir_okay, path_type=given.type)
    return command


class _Word(click.types.StringParamType):
    """Any text, of which a shell offers those that are known."""

    def __init__(self, known: Callable[[], Iterable[tuple[str, str]]]) -> None:
        self._known = known

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """The known words that begin so."""
        try:
            found = dict(self._known())
        except Exception:  # noqa: BLE001 - a shell that completes must not be told of errors
            return []
        # What a shell would take apart, or a terminal obey, cannot be completed.
        return [CompletionItem(word, help=text or None) for word, text in found.items()
                if word.startswith(incomplete) and word.isprintable() and not set(word) & set(" \"'`$\\")]  # fmt: skip


class _Plan(click.Path):
    """A plan: a file that has steps; where there is none that begins so, whatever file the shell finds."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The plans that begin so, here and one folder below."""
        try:
            found = [CompletionItem(path) for path in _plans(incomplete)]
        except (OSError, ValueError):
            found = []
        return found or super().shell_complete(ctx, param, incomplete)


def _plans(incomplete: str) -> Iterator[str]:
    folder, slash, _ = incomplete.rpartition("/")
    base = Path(folder + slash)
    files = islice(chain(base.glob("*.y*ml"), base.glob("[!.]*/*.y*ml")), _MOST_FILES)
    for path in sorted(files):
        text = folder + slash + path.relative_to(base).as_posix()
        if text.startswith(incomplete) and path.is_file() and _has_steps(path):
            yield text


def _has_steps(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\nsteps:" in b"\n" + file.read(_HEAD)


def _opened() -> list[tuple[str, dict[str, Any]]]:
    """The beginning of every run, the newest first."""
    import json

    with closing(_record()) as record:
        rows = record.execute("SELECT run, body FROM event WHERE kind = 'run.opened' ORDER BY sequence DESC")
        return [(str(run), json.loads(body)) for run, body in rows]


def _record() -> Connection:
    """The project's record, for reading. Raises when there is none."""
    import sqlite3
    import tomllib
    from urllib.parse import quote

    here = Path.cwd()
    file = next((found for one in (here, *here.parents) if (found := one / "changectl.toml").is_file()), None)
    settings = {} if file is None else tomllib.loads(file.read_text(encoding="utf-8"))
    database = (here if file is None else file.parent) / str(settings.get("database", _DATABASE))
    if not database.is_file():
        raise FileNotFoundError(database)
    # Nobody has it open: then reading it as it lies creates no files beside it.
    alone = not database.with_name(database.name + "-wal").exists()
    immutable = "&immutable=1" if alone else ""
    return sqlite3.connect(f"file:{quote(str(database))}?mode=ro{immutable}", uri=True, timeout=_PATIENCE)


def _runs() -> Iterator[tuple[str, str]]:
    for run, body in _opened():
        about = f"revert of {body['reverts']}" if body.get("reverts") else str(body.get("reason") or "")
        yield run, about if about.isprintable() else ""


def _services() -> Iterator[tuple[str, str]]:
    return ((str(body["service"]), "") for _, body in _opened() if body.get("service"))


def _hosts() -> Iterator[tuple[str, str]]:
    return ((str(host), "") for _, body in _opened() for host in body.get("hosts", ()))


def _actors() -> Iterator[tuple[str, str]]:
    return ((str(body["actor"]), "") for _, body in _opened() if body.get("actor"))


def _outcomes() -> Iterator[tuple[str, str]]:
    from changectl.core.history.events import OUTCOMES

    return ((word, "") for word in (*OUTCOMES, "open", "not_started"))


def _verdicts() -> Iterator[tuple[str, str]]:
    from changectl.core.judging.judgement import Verdict

    return ((word.value, "") for word in Verdict)


def _changes() -> Iterator[tuple[str, str]]:
    steps = (step for _, body in _opened() for step in body.get("steps", ()))
    return ((str(step["change"]["name"]), "") for step in steps if step["change"]["name"])  # a calibration has none


_WORDS: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "run": _runs,
    "other": _runs,
    "service": _services,
    "host": _hosts,
    "actor": _actors,
    "change": _changes,
    "outcome": _outcomes,
    "verdict": _verdicts,
}
