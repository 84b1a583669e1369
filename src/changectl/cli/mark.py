"""`changectl mark`: say later whether a verdict was right."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="Say whether a verdict was right.",
    epilog=example(
        "changectl mark 20261130-08 right",
        'changectl mark 20261130-08/2 wrong --why "OPS-81 slower since, with the old value it is not"',
    ),
)
@click.argument("run", metavar="RUN[/STEP]")
@click.argument("opinion", type=click.Choice(["right", "wrong"]))
@click.option("--why", metavar="TEXT", default="", help="What showed it; goes into the record.")
@output_options
def command(run: str, opinion: str, why: str, output: OutputOptions) -> int:
    """Say whether the verdict of a run was right: a change that was kept does no harm, one that was taken back did.

    It is appended to the record with who said it; nothing of the run is changed, and no host is touched. The last word
    counts: mark it again to correct yourself. `changectl ledger` counts how often verdicts were wrong.

    Exit code: 0 recorded, 2 usage, 3 the run has no verdict that could be right or wrong.
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.reports import mark as report
    from changectl.reports.printer import Printer

    with reading() as record:
        entry, event = record.mark(run, opinion, why)
    if output.json:
        print_document(report.as_json(entry, event), Printer())
    else:
        print_blocks(report.as_blocks(entry, event), Printer())
    return 0
