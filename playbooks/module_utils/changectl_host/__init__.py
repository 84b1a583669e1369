"""The host program: everything that changectl does on a managed host. Python 3.8+, standard library only."""

from __future__ import annotations

from . import bootstrap, cli, launcher, serve
from .calls import MUTATING, dispatch
from .failure import Failure
from .program import program_zip
from .version import VERSION

# Named so that every module is loaded whenever the package is: the program can then always build itself (program_zip).
__all__ = ["MUTATING", "VERSION", "Failure", "bootstrap", "cli", "dispatch", "launcher", "program_zip", "serve"]
