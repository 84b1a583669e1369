"""`changectl show`: the story of one run."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(short_help="Tell the story of one run.", epilog=example("changectl show 20261130-08"))
@click.argument("run", metavar="RUN[/STEP]")
@output_options
def command(run: str, output: OutputOptions) -> int:
    """Tell the story of a run: what, why, who, the difference, before and after, the reasons, what happened when.

    The beginning of RUN is enough where it is the only one that begins so; RUN/2 tells of its second step alone.
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.reports import show as report
    from changectl.reports.printer import Printer

    with reading() as record:
        story, step = record.story(run)
    if output.json:
        print_document(report.as_json(story, step), Printer())
    else:
        print_blocks(report.as_blocks(story, step), Printer())
    return 0
