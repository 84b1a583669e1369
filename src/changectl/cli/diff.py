"""`changectl diff`: the recorded differences of one run."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(short_help="Show what a run changed, file by file.", epilog=example("changectl diff 20261130-08"))
@click.argument("run", metavar="RUN[/STEP]")
@output_options
def command(run: str, output: OutputOptions) -> int:
    """Show what a run changed in which file on which host, as recorded; digests stand for secret values."""
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.reports import diff as report
    from changectl.reports.printer import Printer

    with reading() as record:
        story, step = record.story(run)
    if output.json:
        print_document(report.as_json(story, step), Printer())
    else:
        print_blocks(report.as_blocks(story, step), Printer())
    return 0
