"""All names of a setting: a plan may use the common one, an engine's, or a flag, and a search may use another."""

from __future__ import annotations

from changectl import engines
from changectl.core.errors import InputError
from changectl.core.settings import Setting


def alike(name: str) -> frozenset[str]:
    """The other names of the settings that any known engine calls so; none for a plain variable.

    Args:
        name: as typed: `concurrency_limit`, `max-num-seqs`, `--max-num-seqs`, `-np`.
    """
    found = [_names(setting) for setting in _settings()]
    return frozenset(other for names in found if _plain(name) in map(_plain, names) for other in names)


def _settings() -> list[Setting]:
    settings: list[Setting] = []
    for name in engines.names():
        try:
            settings += engines.load(name).settings
        except InputError:
            continue  # its settings stand in each service's own file
    return settings


def _names(setting: Setting) -> set[str]:
    names = (setting.name, setting.canonical, setting.key, setting.env, *setting.flags)
    return {name for name in names if name}


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()
