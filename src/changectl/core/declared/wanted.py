"""One declared change in the terms of files: the value that is wanted, and its name in every format."""

from __future__ import annotations

from dataclasses import dataclass

from changectl.core.settings import Carrier, Key, Setting, Value


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one step asks for; made by its kind, carried out the same way for all kinds of values.

    Attributes:
        kind: the kind of change.
        name: as the plan names it.
        setting: the engine's table row; None: a plain environment variable.
        asserted: the value that the plan says it has now.
        is_asserted: whether it says so at all.
        to: the value it shall have.
        twin: of a plain variable, the engine's setting that it gives too, unless something stronger does.
    """

    kind: str
    name: str
    setting: Setting | None
    to: Value
    asserted: Value = None
    is_asserted: bool = False
    twin: Setting | None = None

    @property
    def names(self) -> frozenset[str]:
        """Every name under which this one change may show: the plan's, the engine's, the variable's."""
        of_settings = [name for row in (self.setting, self.twin) if row for name in (row.name, row.env)]
        return frozenset(name for name in (self.name, *of_settings) if name)

    @property
    def changes_answers(self) -> bool:
        """Whether the engine's table says that another value may change what the model says."""
        return any(row.changes_answers for row in (self.setting, self.twin) if row)

    @property
    def label(self) -> str:
        """The name under which records keep the setting: the engine's own, or the variable's."""
        return self.setting.name if self.setting else self.name

    def key(self, carrier: Carrier) -> Key | None:
        """The name to look for in a carrier; None: this carrier cannot hold it."""
        return key_of(self.setting, carrier) if self.setting else _variable(self.name, carrier)


def key_of(setting: Setting, carrier: Carrier) -> Key | None:
    """How a setting is spelled in a carrier; None: it has no spelling there."""
    names: tuple[str, ...]
    match carrier.then or carrier.format:
        case "flags":
            names = setting.flags
        case "env":
            names = (setting.env,) if setting.env else ()
        case "pattern":
            names = (setting.name,)
        case _:
            names = tuple(dict.fromkeys(name for name in (setting.key, setting.name) if name))
    if not names:
        return None
    return Key(names, setting.type, setting.negation, setting.repeatable)


def _variable(name: str, carrier: Carrier) -> Key | None:
    return Key((name,), underscores=False) if (carrier.then or carrier.format) == "env" else None
