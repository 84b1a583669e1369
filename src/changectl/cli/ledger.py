"""`changectl ledger`: how often the product's own verdicts were wrong."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="How often verdicts were wrong.",
    epilog=example("changectl ledger", "changectl ledger --service chat --json"),
)
@click.option("--service", metavar="NAME", help="Only verdicts on this service.")
@output_options
def command(service: str | None, output: OutputOptions) -> int:
    """Show how often a change was taken back for harm that it does not do, and how often one was kept that does some.

    A verdict is judged by an operator (`changectl mark`), by the watch of its step that saw 200 live requests or broke,
    and by the next measurement of the saved configuration under the same conditions where that tells. Rates come with
    the counts they stand on and with an interval that covers 95 %. Verdicts that nobody has judged are listed, and
    count for nothing.

    Exit code: 0, 2 there is no such service.
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import check_word, reading
    from changectl.reports import ledger as report
    from changectl.reports.printer import Printer

    with reading() as record:
        check_word("service", service, [one.service for one in record.services()])
        found = record.ledger(service)
    if output.json:
        print_document(report.as_json(found, service), Printer())
    else:
        print_blocks(report.as_blocks(found), Printer())
    return 0
