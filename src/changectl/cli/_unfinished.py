"""Whatever is looked at: a run that was cut off has to be settled first, and every command says so (on stderr)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from changectl.core.history.runs import RunSummary
from changectl.reports._commands import apart
from changectl.reports.printer import Printer


def tell_unfinished(runs: Sequence[RunSummary], holders: Mapping[str, bool], printer: Printer) -> None:
    """Name the runs whose end is not recorded and whose process is gone.

    Args:
        runs: all that is known of the project's runs.
        holders: the runs that hold a lock, each with whether its process may be alive.
        printer: where it is said.
    """
    for run in runs:
        if run.unfinished and not holders.get(run.run, False):
            text = f"run {run.run} on service {run.service} was cut off; settle it: changectl recover {run.run}"
            printer.note(apart(text), style="red")
