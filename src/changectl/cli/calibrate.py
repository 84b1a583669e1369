"""`changectl calibrate`: learn how much a service's figures differ although nothing is changed."""

from __future__ import annotations

import click

from changectl.cli._options import (
    HostOptions,
    OutputOptions,
    duration,
    example,
    host_options,
    output_options,
    wait_option,
)
from changectl.core.trial.order import LEAST_TO_LEARN, MOST_PAIRS


@click.command(
    short_help="Learn the noise of a service's hosts; nothing is changed.",
    epilog=example("changectl calibrate chat", "changectl calibrate chat --limit gpu1 --outage 30m --time 45m"),
)
@click.argument("service")
@click.option(
    "--pairs",
    type=click.IntRange(LEAST_TO_LEARN, MOST_PAIRS),
    help="So many pairs of phases. Default: as many as make the host count as calibrated, mostly 6.",
)
@click.option("--time", metavar="DURATION", callback=duration, help="As many phases as fit into it, like 45m.")
@click.option(
    "--outage",
    metavar="DURATION",
    callback=duration,
    help="The time that an instance may be stopped or loading in all; needed where nothing takes it out of traffic.",
)
@click.option("--reason", default="calibration", show_default=True, help="Why, for whoever reads the history.")
@wait_option
@host_options
@output_options
def command(
    service: str,
    pairs: int | None,
    time: float | None,
    outage: float | None,
    reason: str,
    wait: float,
    hosts: HostOptions,
    output: OutputOptions,
) -> int:
    """Measure the saved configuration of SERVICE against itself, so that later trials know the noise of its hosts.

    The service is started anew for every phase, out of traffic and under the same load, pre-checks, leases and dead-man
    as in a trial; nothing is ever written. What is learned counts for 30 days on all hosts that are alike (processors,
    GPU, memory, kernel, driver), with the same engine, model and load; one host of each kind is measured. Then `plan`
    and `apply` see smaller effects in fewer pairs, and no longer say "uncalibrated".

    The price (phases, starts, minutes) is said first. Hosts that are known well enough are left alone, unless --pairs
    or --time is given. Ctrl-C ends it with the saved configuration proven; what dies on the way is settled by
    `changectl recover`.

    Exit code: 0 learned or nothing to do, 2 a file is not usable, 3 refused, 5 nothing could be learned, 6 a person is
    needed, 7 another change is open, 9 contact is lost, 130 interrupted.
    """
    from changectl.cli._failures import tell
    from changectl.cli._orders import calibration_of
    from changectl.cli._result import show_run
    from changectl.cli.wiring import workplace
    from changectl.core.trial.calibration import Calibration
    from changectl.reports.printer import Printer
    from changectl.workflow.apply import apply

    if pairs is not None and time is not None:
        raise click.UsageError("--pairs and --time say the same thing: give one of them")
    if not reason.strip() or not reason.isprintable():
        raise click.UsageError("--reason is one line of text")
    printer = Printer()
    with workplace(hosts, printer, wait=wait) as work:
        order = calibration_of(service, Calibration(pairs, time), outage, reason, work)
        end = apply(order, work.tools)
        events = work.store.journal.events

        def show() -> None:
            show_run(events(end.run), end.last, end.exit_code, printer, as_json=output.json)

        return tell(end.exit_code, show, f"changectl show {end.run}")
