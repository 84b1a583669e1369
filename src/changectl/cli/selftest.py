"""`changectl selftest`: does measuring this service see a difference that is known to be there?"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from changectl.core.history.selftests import SelfTestRun
    from changectl.reports.printer import Printer


@click.command(
    short_help="Prove that measuring a service sees; changes nothing.",
    epilog=example("changectl selftest chat", "changectl selftest chat --seconds 1m", "changectl selftest chat --last"),
)
@click.argument("service")
@click.option(
    "--seconds", metavar="DURATION", callback=duration, help="How long each of the six phases lasts, like 1m."
)
@click.option("--last", is_flag=True, help="Only tell what the record has of the last one; no host is touched.")
@wait_option
@host_options
@output_options
def command(
    service: str, seconds: float | None, last: bool, wait: float, hosts: HostOptions, output: OutputOptions
) -> int:
    """Put a known delay into the way to SERVICE, and see whether a trial's judge finds it.

    The running service gets the load of one level (`low`, else the first) through a relay, in six phases: two as a
    reference, two just the same, and two in which the relay holds every request back, by 0.4 times the time to the
    first token and 25 ms at least. The delay has to be judged a regression, and no delay must not be. Otherwise
    measuring is blind there, a trial's "no harm" would prove nothing, and you are told why and what to do.

    Nothing is changed, stopped or started, and the service stays with its users. So no more is sent than a tenth of
    what they send, unless nobody came for a minute or the service says `load_on_live`. Minutes and requests are said
    first. It is recorded, and `--last` tells when measuring was last proven.

    Exit code: 0 it sees, 2 a file is not usable, 3 it is blind, was never proven, or no load may be sent, 7 a change is
    open, 9 a host is lost, 130 interrupted.
    """
    from changectl.cli._failures import tell
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.reports import selftest as report
    from changectl.reports.printer import Printer

    printer = Printer()
    found: SelfTestRun | None
    if last:
        with reading() as record:
            found = record.last_selftest(service)
    else:
        found = _prove(service, seconds, wait, hosts, printer)
    code = report.exit_code(found)

    def show() -> None:
        if output.json:
            print_document(report.as_json(service, found), printer, code)
        else:
            print_blocks(report.as_blocks(service, found), printer)

    return tell(code, show, f"changectl selftest {service} --last")


def _prove(service: str, seconds: float | None, wait: float, hosts: HostOptions, printer: Printer) -> SelfTestRun:
    from changectl.cli._orders import selftest_of
    from changectl.cli.wiring import workplace
    from changectl.core.history.selftests import selftests
    from changectl.workflow.selftest import self_test

    with workplace(hosts, printer, wait=wait) as work:
        end = self_test(selftest_of(service, seconds, work), work.tools)
        return selftests(work.store.journal.events(end.run), service)[-1]
