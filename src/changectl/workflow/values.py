"""One setting in its three places: the file, the running process, the engine itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from changectl import formats
from changectl.core.declared.wanted import Wanted
from changectl.core.engine import Pages
from changectl.core.errors import EditRefused
from changectl.core.observed import Observed
from changectl.core.precheck import NOT_EXPOSED, Seen, ThreeValues
from changectl.core.settings import Carrier, Value
from changectl.workflow.locate import InFile, Locator, file_values
from changectl.workflow.target import Target

NOT_IN_FILES = Seen(known=False, why="not in the declared files")


def three_values(
    target: Target, wanted: Wanted, locator: Locator, observed: Observed, pages: Pages, log: list[str]
) -> tuple[ThreeValues, ...]:
    """Every setting that is set anywhere, and the wanted one: in the file, in the process, in the engine."""
    process = observed.process
    argv, environ = (process.argv, process.environ) if process else (None, None)
    running = target.engine.running(argv or [], environ or {})
    reported = target.engine.effective(pages, log)
    in_files = file_values(locator, {*running, *([wanted.label] if wanted.setting else [])})
    rows = [
        ThreeValues(
            setting.name,
            _declared(in_files[setting.name].seen, setting.name == wanted.label),
            _in_process(running.get(setting.name), in_files[setting.name], argv is not None),
            Seen(reported[setting.name]) if setting.name in reported else NOT_EXPOSED,
            setting,
        )
        for setting in target.engine.settings
        if setting.name in in_files
    ]
    if wanted.setting is None and wanted.name:
        rows.append(_variable(wanted, locator, environ))
    if environ is not None:
        known = {wanted.name, *(setting.env for setting in target.engine.settings if setting.env)}
        rows += other_variables(locator, environ, known)
    return tuple(rows)


def other_variables(locator: Locator, environ: Mapping[str, str], known: Collection[str | None]) -> list[ThreeValues]:
    """Every variable that the files set: one that the process has otherwise is an edit that waits for a restart.

    What the manager reads reaches the process, so its absence there is a difference too; a file that only a start
    script reads need not export what it sets.
    """
    managed, declared = _managed_variables(locator), _declared_variables(locator)
    found = {name: value for name, value in declared.items() if name in environ} | managed
    return [
        ThreeValues(name, Seen(value), Seen(environ.get(name)), NOT_EXPOSED)
        for name, value in found.items()
        if name not in known
    ]


def _managed_variables(locator: Locator) -> dict[str, str]:
    """What the manager itself sets, the strongest source last; unreadable ones are left out."""
    sources = locator.manager.environment_sources(locator.observed)
    units = [(source.path, source.data) for source in sources if source.kind == "unit" and source.data is not None]
    found: dict[str, str] = {}
    with suppress(EditRefused):
        # What holds a specifier reads differently in the process.
        unit = formats.unit_environment(units)
        found |= {name: variable.value for name, variable in unit.items() if "%" not in variable.value}
    for source in sources:
        if source.kind != "unit" and source.data is not None:
            found |= _variables(source.path, source.data)
    return found


def _declared_variables(locator: Locator) -> dict[str, str]:
    """What the service's own environment files set, the strongest last."""
    found: dict[str, str] = {}
    for carrier in reversed(locator.carriers):
        data = locator.observed.content(carrier.file) if carrier.format == "env" and carrier.file else None
        if data is not None:
            found |= _variables(str(carrier.file), data)
    return found


def _variables(path: str, data: bytes) -> dict[str, str]:
    with suppress(EditRefused):
        settings = formats.settings(data, Carrier("env", file=path))
        return {name: values[-1] for name, values in settings.items() if values}
    return {}


def _declared(in_file: Seen, is_wanted: bool) -> Seen:
    """A setting that stands in no declared file may well be set elsewhere (a start script): then the file is silent."""
    if is_wanted or not in_file.known or in_file.value is not None:
        return in_file
    return NOT_IN_FILES


def _in_process(value: Value, in_file: InFile, is_running: bool) -> Seen:
    if not is_running:
        return Seen(known=False, why="no running process")
    if value is None and in_file.read_by_engine:
        return Seen(known=False, why="the engine reads it from its file")
    return Seen(value)


def _variable(wanted: Wanted, locator: Locator, environ: Mapping[str, str] | None) -> ThreeValues:
    in_file = Seen(locator.find(wanted).reading.value)
    in_process = Seen(environ.get(wanted.name)) if environ is not None else Seen(known=False, why="no running process")
    return ThreeValues(wanted.label, in_file, in_process, NOT_EXPOSED)
