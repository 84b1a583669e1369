"""Where a value really comes from, and the one byte-exact edit that changes it there; no host is asked."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from changectl import formats
from changectl.core.declared.wanted import Wanted, key_of
from changectl.core.engine import Engine
from changectl.core.errors import EditRefused, Refused
from changectl.core.manager import Manager
from changectl.core.observed import Observed
from changectl.core.precheck import Seen
from changectl.core.settings import Carrier, Key, Reading, Setting, Value

ON_COMMAND_LINE = ("flags", "env")  # formats whose values the process itself shows


@dataclass(frozen=True, slots=True)
class Place:
    """One file in which a value stands, or could stand."""

    carrier: Carrier
    key: Key
    path: str
    data: bytes
    reading: Reading


@dataclass(frozen=True, slots=True)
class InFile:
    """A value in the files, and whether the engine reads that file itself (so no process argument shows it)."""

    seen: Seen
    read_by_engine: bool = False


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The bytes of one file before and after."""

    path: str
    before: bytes
    after: bytes
    place: Place

    def diff(self) -> str:
        """The change as people read it (not redacted)."""
        old, new = (part.decode("utf-8", "replace").splitlines(keepends=True) for part in (self.before, self.after))
        return "".join(difflib.unified_diff(old, new, self.path, self.path, n=2))


@dataclass(frozen=True)
class Locator:
    """Finds values in the configuration files of one instance."""

    carriers: tuple[Carrier, ...]  # strongest first
    engine: Engine
    manager: Manager
    observed: Observed

    def find(self, wanted: Wanted) -> Place:
        """The place whose value counts, or where an absent value is to be inserted.

        Raises:
            EditRefused: the answer is not certain; why, and where.
            Refused: no declared carrier can hold it.
        """
        empty: Place | None = None
        for carrier in self._candidates(wanted):
            key = wanted.key(carrier)
            if key is None:
                continue
            for place in self._places(carrier, key):
                if place.reading.value is not None:
                    return place
                # Where a declared file is missing, a new value does not go into a place that nobody declared.
                if carrier in self.carriers or not self._missing(wanted):
                    empty = empty or place
        if empty is None:
            raise Refused(self._nowhere(wanted), reason="no_carrier")
        return empty

    def edit(self, wanted: Wanted) -> FileEdit:
        """The one edit that gives the value that is wanted."""
        place = self.find(wanted)
        after = formats.edit(place.data, place.carrier, place.key, wanted.to)
        return FileEdit(place.path, place.data, after, place)

    def no_edit(self) -> FileEdit:
        """A configuration file as it stands, for a run that changes none: by it the way back proves that it is so.

        Raises:
            Refused: there is none.
        """
        for path in sorted(self.observed.files):
            data = self.observed.content(path)
            if data is not None:
                return FileEdit(path, data, data, Place(Carrier("", file=path), Key(()), path, data, Reading()))
        raise Refused("the service has no configuration file that could be saved", reason="no_carrier")

    def seen(self, setting: Setting) -> InFile:
        """A setting's value in the files."""
        try:
            place = self.find(Wanted("parameter", setting.name, setting, None))
        except Refused:
            return InFile(Seen(None))
        except EditRefused as error:
            return InFile(Seen(known=False, why=str(error)))
        carried = (place.carrier.then or place.carrier.format) not in ON_COMMAND_LINE
        return InFile(Seen(place.reading.value), carried and place.reading.value is not None)

    def _nowhere(self, wanted: Wanted) -> str:
        """Why a value has no place: the file that would hold it is not there, or none is declared that could."""
        if missing := self._missing(wanted):
            return (
                f"{wanted.name} would stand in {', '.join(missing)}, which is not there: write that file, "
                "or correct its path under `config` in the service file"
            )
        known = "; ".join(str(carrier) for carrier in self.carriers) or "none"
        return f"{wanted.name} cannot be written in any carrier of the service ({known})"

    def _missing(self, wanted: Wanted) -> list[str]:
        """The declared files that could hold a value and do not exist."""
        could_hold = [carrier.file for carrier in self.carriers if carrier.file and wanted.key(carrier)]
        return [path for path in could_hold if (facts := self.observed.files.get(path)) and facts.exists is False]

    def _candidates(self, wanted: Wanted) -> Iterator[Carrier]:
        """The declared carriers; for variables also the manager's own sources, strongest first."""
        yield from self.carriers
        if wanted.setting is None or wanted.setting.env:
            declared = {(carrier.unit, carrier.file) for carrier in self.carriers if carrier.format == "env"}
            yield from (one for one in self._environment() if (one.unit, one.file) not in declared)

    def _environment(self) -> Iterator[Carrier]:
        sources = self.manager.environment_sources(self.observed)
        for source in reversed(sources):
            if source.kind == "environment_file" and source.data is not None:
                yield Carrier("env", file=source.path)
        if self.observed.manager.unit and any(source.kind == "unit" for source in sources):
            yield Carrier("env", unit=self.observed.manager.unit)

    def _places(self, carrier: Carrier, key: Key) -> Iterator[Place]:
        files = self.manager.carrier_files(self.observed, carrier)
        for path, data in self._relevant(files, carrier):
            try:
                yield Place(carrier, key, path, data, formats.read(data, carrier, key))
            except formats.ValueElsewhere as elsewhere:
                yield from self._in_variable(elsewhere, key)

    def _relevant(self, files: list[tuple[str, bytes]], carrier: Carrier) -> Iterator[tuple[str, bytes]]:
        """Of a unit with drop-ins: the file that gives the command; for variables all, the last one first."""
        if carrier.unit and carrier.format == "flags":
            path = formats.effective_file(files, "ExecStart")
            yield from ((name, data) for name, data in files if name == path)
        else:
            yield from reversed(files)

    def _in_variable(self, elsewhere: formats.ValueElsewhere, key: Key) -> Iterator[Place]:
        """Follow `--flag ${NAME}`, or options in `$ARGS`, to where the variable gets its value."""
        if not elsewhere.candidates:
            variable = replace(key, names=(elsewhere.variable,), negation=None, underscores=False)
            place = next(self._set_in_environment(lambda carrier: carrier, variable), None)
            if place is None:
                raise elsewhere
            yield place
            return
        room: Place | None = None
        for name in elsewhere.candidates:
            for place in self._set_in_environment(partial(replace, at=name, then="flags"), key, holder=name):
                if place.reading.value is not None:
                    yield place
                    return
                room = room or (place if name == elsewhere.variable and elsewhere.insertable else None)
        if room is None:
            raise elsewhere
        yield room

    def _set_in_environment(
        self, nested: Callable[[Carrier], Carrier], key: Key, holder: str | None = None
    ) -> Iterator[Place]:
        """The strongest place where a variable is set: `key` itself, or `holder` with options nested in it."""
        outer = key if holder is None else Key((holder,), underscores=False)
        for carrier in self._environment():
            for path, data in reversed(self.manager.carrier_files(self.observed, carrier)):
                if formats.read(data, carrier, outer).value is not None:
                    inner = nested(carrier)
                    yield Place(inner, key, path, data, formats.read(data, inner, key))
                    return


def file_values(locator: Locator, names: set[str]) -> dict[str, InFile]:
    """Every setting of the engine that stands in a file, and all in `names` besides; by setting name."""
    values = {setting.name: locator.seen(setting) for setting in locator.engine.settings}
    return {
        name: found
        for name, found in values.items()
        if name in names or (found.seen.known and found.seen.value is not None)
    }


def read_by_engine(carriers: Sequence[Carrier]) -> tuple[str, ...]:
    """The declared files that the engine reads itself, so that no argument and no variable shows what it took."""
    shown = ON_COMMAND_LINE
    return tuple(one.file for one in carriers if one.file and (one.then or one.format) not in shown)


def as_text(value: Value) -> str:
    """A value in a sentence."""
    return "absent" if value is None else value


__all__ = ["FileEdit", "Locator", "Place", "as_text", "file_values", "key_of", "read_by_engine"]
