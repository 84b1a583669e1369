"""`changectl recover`: settle runs that were cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from changectl.cli._options import (
    FORMAT,
    HostOptions,
    OutputOptions,
    example,
    host_options,
    output_options,
    wait_option,
)

if TYPE_CHECKING:
    from changectl.cli.wiring import Workplace
    from changectl.core.errors import ChangectlError
    from changectl.core.lifecycle import Ending
    from changectl.reports.printer import Printer


@click.command(
    short_help="Settle a run that was cut off.",
    epilog=example("changectl recover", "changectl recover 20261130-081502-chat-k3f7"),
)
@click.argument("run", metavar="[RUN]", required=False)
@click.option(
    "--continue",
    "go_on",
    is_flag=True,
    help="Keep a change that was judged good before the run was cut off, if it still runs and answers everywhere.",
)
@wait_option
@host_options
@output_options
def command(run: str | None, go_on: bool, wait: float, hosts: HostOptions, output: OutputOptions) -> int:
    """Give a run that was cut off its end (all of them, where RUN is left out), by asking its hosts what is so there.

    Where every host has on record that the change was judged and kept, it is kept. In all other cases the saved
    configuration is brought back and proven, or proven to be back already, where a host's dead-man was first. Whatever
    the dead run may still do on a host is shut out before anything is asked.

    Exit code: 0 settled or nothing to settle, 3 --continue is not safe (leave it out), 6 a person is needed, 7 the run
    still lives or another one has a host, 9 a host does not answer: its dead-man restores it, and the run stays open
    until it can be asked.
    """
    from changectl.cli._failures import tell
    from changectl.cli.wiring import workplace
    from changectl.core.history import reading as history
    from changectl.reports.printer import Printer
    from changectl.workflow.recover import exit_code

    printer = Printer()
    with workplace(hosts, printer, wait=wait) as work:
        journal = work.store.journal
        known = history.runs(journal.select(kinds=history.SUMMARY_KINDS))
        waiting = [one.run for one in known if one.unfinished]
        names = waiting if run is None else [history.resolve_run(run, journal.runs())]
        if run is not None:
            endings: list[tuple[str, Ending]] = [(names[0], _recover(names[0], work, go_on=go_on))]
            errors: list[tuple[str, ChangectlError]] = []
        else:
            endings, errors = _all(names, work, go_on=go_on)
        codes = [exit_code(ending) for _, ending in endings] + [error.exit_code for _, error in errors]
        code = max(codes, default=0)
        return tell(code, lambda: _show(endings, errors, code, work, printer, output), "changectl history")


def _all(
    names: Sequence[str], work: Workplace, *, go_on: bool
) -> tuple[list[tuple[str, Ending]], list[tuple[str, ChangectlError]]]:
    """Every run for itself: a host that does not answer keeps no other service from its end."""
    from changectl.core.errors import ChangectlError

    endings: list[tuple[str, Ending]] = []
    errors: list[tuple[str, ChangectlError]] = []
    for name in names:
        try:
            endings.append((name, _recover(name, work, go_on=go_on)))
        except ChangectlError as error:
            errors.append((name, error))
    return endings, errors


def _show(
    endings: Sequence[tuple[str, Ending]],
    errors: Sequence[tuple[str, ChangectlError]],
    code: int,
    work: Workplace,
    printer: Printer,
    output: OutputOptions,
) -> None:
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._result import run_document, show_run
    from changectl.reports._commands import told
    from changectl.workflow.recover import exit_code

    events = work.store.journal.events
    if output.json:
        runs = [run_document(events(name), ending, exit_code(ending)) for name, ending in endings]
        still_open = [{"run": name, "reason": error.reason, "message": str(error), "exit_code": error.exit_code}
                      for name, error in errors]  # fmt: skip
        print_document({"format": FORMAT, "runs": runs, "still_open": still_open, "exit_code": code}, printer)
        return
    if not endings and not errors:
        printer.line("No run is unfinished: there is nothing to recover.")
    for name, ending in endings:
        own = events(name)
        reverts = next((event.body.get("reverts") for event in own if event.kind == "run.opened"), None)
        reverted = events(str(reverts)) if reverts else ()
        show_run(own, ending, exit_code(ending), printer, as_json=False, reverted=reverted)
    for name, error in errors:
        print_blocks(told(f"run {name} is still open: {error}", "bad"), printer)


def _recover(name: str, work: Workplace, *, go_on: bool) -> Ending:
    from changectl.adapters.files import load_service
    from changectl.cli._orders import instances_of
    from changectl.workflow.open_run import open_run
    from changectl.workflow.recover import recover

    events = work.store.journal.events(name)
    reverts = next((event.body.get("reverts") for event in events if event.kind == "run.opened"), None)
    order = open_run(events, work.store.journal.events(str(reverts)) if reverts else ())
    service = load_service(order.service, work.project).service
    return recover(order, instances_of(service, work), work.tools, go_on=go_on)
