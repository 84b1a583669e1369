"""`changectl status`: where every service stands, by the record."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(short_help="Say where every service stands.", epilog=example("changectl status chat"))
@click.argument("service", required=False)
@output_options
def command(service: str | None, output: OutputOptions) -> int:
    """Say for each service (or one): its last change, what is in force, what is unfinished, what was never judged.

    This is what the record says; no host is asked.
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import check_word, reading
    from changectl.core.history.reading import services
    from changectl.reports import status as report
    from changectl.reports.printer import Printer

    with reading() as record:
        known = services(record.runs())
        holders = record.holders()
    check_word("changed service", service, [one.service for one in known])
    chosen = [one for one in known if service in (None, one.service)]
    if output.json:
        print_document(report.as_json(chosen, holders), Printer())
    else:
        print_blocks(report.as_blocks(chosen, holders), Printer())
    return 0
