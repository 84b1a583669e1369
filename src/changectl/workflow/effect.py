"""Did the change arrive? The furthest readable value has to have moved, and nothing that nobody declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.engine import Pages
from changectl.core.observed import Observed
from changectl.core.precheck import NOT_EXPOSED, Seen, ThreeValues
from changectl.core.settings import Setting
from changectl.workflow.conditions import VOLATILE
from changectl.workflow.contact import Contact
from changectl.workflow.locate import Locator
from changectl.workflow.secrets import Secrets
from changectl.workflow.values import three_values


@dataclass(frozen=True)
class Effect:
    """What the three places say after the change."""

    before: ThreeValues
    after: ThreeValues
    furthest: str  # engine, process or file: the furthest place that could be read
    effective: bool
    also_moved: tuple[str, ...]  # undeclared differences in files and process
    followed: tuple[str, ...]  # what the engine itself reports differently besides: derived values

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "name": self.before.name,
            "values": {
                place: {"before": str(getattr(self.before, place)), "after": str(getattr(self.after, place))}
                for place in ("file", "process", "engine")
            },
            "furthest": self.furthest,
            "effective": self.effective,
            "also_moved": list(self.also_moved),
            "followed": list(self.followed),
        }


def effect_of(contact: Contact, observed: Observed, pages: Pages, log: list[str], secrets: Secrets) -> Effect:
    """Compare the instance now with how it was found.

    Args:
        contact: as it was found.
        observed: files and process now.
        pages: the engine's answers now.
        log: its log since the start.
        secrets: for showing what moved without showing values.
    """
    target, wanted = contact.target, contact.wanted
    locator = Locator(target.service.carriers, target.engine, target.manager, observed)
    rows = {row.name: row for row in three_values(target, wanted, locator, observed, pages, log)}
    after, before = rows[wanted.label], contact.three
    if wanted.twin is not None and wanted.twin.name in rows:
        before, after = _through_twin(contact, wanted.twin, before, after, rows[wanted.twin.name])
    furthest, effective = _furthest(contact, before, after)
    return Effect(before, after, furthest, effective, _also_moved(contact, observed, secrets), _followed(contact, rows))


def _through_twin(
    contact: Contact, twin: Setting, before: ThreeValues, after: ThreeValues, now: ThreeValues
) -> tuple[ThreeValues, ThreeValues]:
    """A variable that the engine knows counts as what wins there: a flag of the same setting may be stronger."""
    was = next((row.engine for row in contact.values if row.name == twin.name), NOT_EXPOSED)
    return replace(before, engine=was, setting=twin), replace(
        after, process=now.process, engine=now.engine, setting=twin
    )


def _furthest(contact: Contact, before: ThreeValues, after: ThreeValues) -> tuple[str, bool]:
    wanted, engine, setting = contact.wanted, contact.target.engine, after.setting
    if setting is not None and after.engine.known:
        reported = after.engine.value
        # What was not readable before cannot be seen to have moved: then it has to be what was asked for.
        moved = before.engine.known and not engine.same(setting, before.engine.value, reported)
        if wanted.to is None or reported is None:
            return "engine", moved or _is(contact, setting, after.process)
        return "engine", engine.took_effect(setting, wanted.to, reported) or moved
    if after.process.known:
        return "process", _is(contact, setting, after.process)
    return "file", _is(contact, setting, after.file)


def _is(contact: Contact, setting: Setting | None, seen: Seen) -> bool:
    value = contact.wanted.to
    if not seen.known:
        return False
    return seen.value == value if setting is None else contact.target.engine.same(setting, seen.value, value)


def _also_moved(contact: Contact, observed: Observed, secrets: Secrets) -> tuple[str, ...]:
    """Files other than the edited one, start parameters and variables that differ although nobody declared it."""
    old, new = contact.observed, observed
    moved = [
        f"file {path}"
        for path in sorted({*old.files, *new.files})
        if path not in contact.edited_paths and _digest(old, path) != _digest(new, path)
    ]
    if old.process is None or new.process is None:
        return tuple(moved)
    engine, wanted = contact.target.engine, contact.wanted
    settings = [engine.running(process.argv or [], process.environ or {}) for process in (old.process, new.process)]
    moved += [f"setting {name}" for name in _moved(*settings) if name not in wanted.names]
    variables = [process.environ or {} for process in (old.process, new.process)]
    own = {*wanted.names, *contact.edit.place.key.names}
    moved += [f"variable {name}" for name in _moved(*variables) if name not in own and name not in VOLATILE]
    return tuple(secrets.clean(moved))


def _digest(observed: Observed, path: str) -> str | None:
    facts = observed.files.get(path)
    return None if facts is None or not facts.exists else facts.sha256


def _moved(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _followed(contact: Contact, rows: Mapping[str, ThreeValues]) -> tuple[str, ...]:
    """Other settings that the engine reports differently: they follow from the declared one, and are shown."""
    old = {row.name: row for row in contact.values}
    return tuple(
        f"{name}: {old[name].engine} -> {row.engine}"
        for name, row in rows.items()
        if name in old and name != contact.wanted.label and old[name].engine != row.engine
    )
