"""`changectl revert`: take a kept change back."""

from __future__ import annotations

import click

from changectl.cli._options import HostOptions, OutputOptions, example, host_options, output_options, wait_option


@click.command(
    short_help="Take a run back and prove that it is back.",
    epilog=example('changectl revert 20261130-081502-chat-k3f7 --reason "OPS-77 users complain"'),
)
@click.argument("run", metavar="RUN")
@click.option(
    "--accept-present",
    is_flag=True,
    help="Only for a run that was cut off, or whose way back failed: accept what stands on the hosts now, unchanged.",
)
@click.option("--reason", default="", help="Why, for whoever reads the history; --accept-present needs it.")
@wait_option
@host_options
@output_options
def command(run: str, accept_present: bool, reason: str, wait: float, hosts: HostOptions, output: OutputOptions) -> int:
    """Take back all kept steps of a run, last first, and prove that the saved configuration runs again.

    A run that was cut off is taken back the same way. Refused when a later change stands on it, or when somebody edited
    the file since. Doing it twice changes nothing. The beginning of RUN is enough where it is the only such run.
    Exit code: 0 back, 3 refused, 6 a person is needed.
    """
    from changectl.adapters.files import load_service
    from changectl.cli._failures import tell
    from changectl.cli._orders import instances_of
    from changectl.cli._result import show_run
    from changectl.cli.wiring import workplace
    from changectl.core.errors import InputError
    from changectl.core.history import reading as history
    from changectl.reports.printer import Printer
    from changectl.workflow import revert as workflow
    from changectl.workflow.revert import Revert, exit_code, later_run, what_to_revert

    if accept_present and not reason.strip():
        raise InputError("say why what stands there is right: --reason TEXT")
    printer = Printer()
    with workplace(hosts, printer, wait=wait) as work:
        journal = work.store.journal
        name = history.resolve_run(run, journal.runs())

        def reread() -> tuple[Revert, str | None]:
            ends = journal.select(kinds=("run.opened", "run.closed"))
            found = what_to_revert(name, journal.events(name), reason or f"revert of {name}", ends)
            return found, later_run(found, journal.select(kinds=("run.opened", "run.closed", "step.closed")))

        order, later = reread()
        service = load_service(order.service, work.project).service
        placed = instances_of(service, work)
        if accept_present:
            new, ending = workflow.accept_present(order, placed, work.tools, reread)
        else:
            new, ending = workflow.revert(order, placed, later, work.tools, reread)

        def show() -> None:
            reverted = journal.events(name)
            show_run(journal.events(new), ending, exit_code(ending), printer, as_json=output.json, reverted=reverted)

        return tell(exit_code(ending), show, f"changectl show {new}")
