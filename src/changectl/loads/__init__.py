"""How requests are written and answers read, one file per protocol.

These files also travel to callers' hosts inside the load generator: standard library only, Python 3.8, nothing else of
this package. A member has NAME, METRICS (what its answers let us measure), STREAMED and `build_request`; one whose
answers come piece by piece has `classify`, which reads an event, and one whose answers come whole has `read`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Tuple


def names() -> Tuple[str, ...]:
    """The protocols there are (works from a folder and from inside a zip)."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")))


def load(name: str) -> Any:
    """The module of one protocol.

    Raises:
        InputError: there is no such protocol; the text lists those there are.
    """
    if name in names():
        return importlib.import_module("{}.{}".format(__name__, name))
    # Only the controller has this class; the generator on a caller's host asks `names` first.
    from changectl.core.errors import InputError

    raise InputError('there is no load protocol "{}"; known: {}'.format(name, ", ".join(names())))
