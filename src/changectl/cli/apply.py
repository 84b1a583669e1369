"""`changectl apply`: carry out a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from changectl.cli._options import HostOptions, OutputOptions, example, host_options, output_options, wait_option


@click.command(
    short_help="Change one thing per step; keep it or restore.",
    epilog=example(
        "changectl apply changeplans/0001-more-sequences.yml",
        "changectl apply -i inventory/lab.yml --json plan.yml > result.json",
    ),
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--incident", metavar="REASON", help="The service is sick already: change it, watch it for 2 minutes.")
@wait_option
@host_options
@output_options
def command(plan: Path, incident: str | None, wait: float, hosts: HostOptions, output: OutputOptions) -> int:
    """Apply a plan: change one thing per step, judge it, keep it or bring the saved configuration back.

    Every step is saved and proven restorable first, measured before and after under the same conditions, and kept
    only if the evidence says so. The first step that is not kept ends the run.

    With --incident nothing is measured, and what a sick service cannot pass is waived. The change is watched live (no
    restart, no failure in the log, a real answer every 5 seconds) and then kept unjudged; REASON goes into the record.

    Ctrl-C brings the saved configuration back; a second one leaves at once. Whatever dies on the way (this process, the
    network, the host): each host restores the saved configuration by itself when its lease is over, and `changectl
    recover` gives the run its end.

    Exit code: 0 kept or nothing to do, 2 a file is not usable, 3 refused and nothing changed, 4 not kept for cause, 5
    not kept for lack of evidence (both restored and verified), 6 a person is needed, 7 another change of the service or
    on a host is open, 9 contact is lost and the host restores itself, 130 interrupted (restored and verified).
    """
    from changectl.cli._failures import tell
    from changectl.cli._orders import check_files, order_of
    from changectl.cli._result import show_run
    from changectl.cli.wiring import workplace
    from changectl.core.incident import Incident
    from changectl.reports.printer import Printer
    from changectl.workflow.apply import apply

    sick = None if incident is None else Incident(incident)
    check_files(plan, hosts.inventory, incident=sick is not None)
    printer = Printer()
    with workplace(hosts, printer, wait=wait) as work:
        order = replace(order_of(plan, work, incident=sick is not None), incident=sick)
        end = apply(order, work.tools)
        events = work.store.journal.events

        def show() -> None:
            show_run(events(end.run), end.last, end.exit_code, printer, as_json=output.json)

        return tell(end.exit_code, show, f"changectl show {end.run}")
