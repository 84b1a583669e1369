"""`changectl extend`: go on with a trial that ended without a verdict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from changectl.cli._options import HostOptions, OutputOptions, example, host_options, output_options, wait_option

if TYPE_CHECKING:
    from changectl.cli.wiring import Workplace
    from changectl.workflow.extend import Extension


@click.command(
    short_help="Go on with a trial that ended without a verdict.",
    epilog=example("changectl extend 20261130-081502-chat-k3f7", "changectl extend 20261130-08 --pairs 2"),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--pairs",
    type=click.IntRange(min=1),
    help="So many pairs of phases more. Default: as many as the end of RUN said would decide it.",
)
@wait_option
@host_options
@output_options
def command(run: str, pairs: int | None, wait: float, hosts: HostOptions, output: OutputOptions) -> int:
    """Go on with the trial of RUN, which ended inconclusive: its phases stay evidence, and more follow in a new run.

    Everything else is as with apply: pre-checks, snapshot, dead-man, kept or restored, the same exit codes. The error
    rates are spent once: a trial has at most 8 pairs and 6 looks, over all its runs. Refused where the plan, the
    service, the workload or the host are not as they were, where RUN measured more than 24 hours ago, or where another
    run has gone on with it already.
    """
    from changectl.cli._failures import tell
    from changectl.cli._orders import order_of
    from changectl.cli._result import show_run
    from changectl.cli.wiring import workplace
    from changectl.core.history import reading as history
    from changectl.reports.printer import Printer
    from changectl.workflow.apply import apply

    printer = Printer()
    with workplace(hosts, printer, wait=wait) as work:
        journal = work.store.journal
        read = partial(_read, history.resolve_run(run, journal.runs()), work, pairs)
        order = order_of(_plan_file(read().plan, work), work)
        end = apply(order, work.tools, read)

        def show() -> None:
            show_run(journal.events(end.run), end.last, end.exit_code, printer, as_json=output.json)

        return tell(end.exit_code, show, f"changectl show {end.run}")


def _read(name: str, work: Workplace, pairs: int | None) -> Extension:
    from changectl.core.history import reading as history
    from changectl.workflow.extend import what_to_extend

    journal = work.store.journal
    runs = history.runs(journal.select(kinds=history.SUMMARY_KINDS))
    return what_to_extend(name, journal.events, runs, work.tools.clock.now(), pairs)


def _plan_file(written: str, work: Workplace) -> Path:
    """The plan's file as it was named then, from here or from the project's folder. Raises InputError."""
    from changectl.core.errors import InputError, Problem

    places = (Path(written), Path(work.project.root) / written)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        hint = "run it where the plan was applied: its path is relative to that folder"
        raise InputError(Problem("there is no such plan any more", written, hint=hint))
    return found
