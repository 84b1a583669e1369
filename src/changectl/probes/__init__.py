"""Pre-checks: one file per check, each with its place `ORDER`, its `CHECK` and the pure function `check`."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from changectl.core.errors import InputError, Problem
from changectl.core.precheck import Check, CheckResult, Situation

CheckFunction = Callable[[Situation], CheckResult]


@dataclass(frozen=True, slots=True)
class Precheck:
    """One check of the family."""

    order: int
    check: Check
    run: CheckFunction


def names() -> list[str]:
    """Every pre-check there is a file for."""
    return list(_names())


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")))


def load(name: str) -> Precheck:
    """One check by name.

    Raises:
        InputError: unknown; the known ones are listed.
    """
    if name not in names():
        raise InputError(Problem(f"unknown pre-check {name!r}", hint=f"known: {', '.join(names())}"))
    module = import_module(f"{__name__}.{name}")
    return Precheck(module.ORDER, module.CHECK, module.check)


def all_checks() -> list[Precheck]:
    """Every check, in the order in which they are shown."""
    return sorted((load(name) for name in names()), key=lambda precheck: (precheck.order, precheck.check.name))


def run_all(situation: Situation, checks: Iterable[Precheck] | None = None) -> list[CheckResult]:
    """Run every check; all are run, whatever the others found."""
    every = list(all_checks() if checks is None else checks)
    return _traced(situation, [(precheck.check, precheck.run(situation)) for precheck in every])


def _traced(situation: Situation, results: Sequence[tuple[Check, CheckResult]]) -> list[CheckResult]:
    """Say of what nobody could look at because the service is down that this is the reason; it stays unknown."""
    down = next((one for _, one in results if one.name == "healthy_now" and one.state == "failed"), None)
    if down is None or situation.observed is None or situation.observed.process is not None:
        return [one for _, one in results]
    why = "not checked, because the service does not run"
    return [
        replace(one, detail=why, hint="", because=down.name) if check.reads_process and one.state == "unknown" else one
        for check, one in results
    ]
