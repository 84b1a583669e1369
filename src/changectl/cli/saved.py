"""`changectl saved`: the controller's own copy of what a run saved, for the day when a host has lost its own."""

from __future__ import annotations

from pathlib import Path

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="Get saved files back from the controller's copy.",
    epilog=example("changectl saved 20261130-08", "changectl saved 20261130-08/1 --to rescued"),
)
@click.argument("run", metavar="RUN[/STEP]")
@click.option("--to", "folder", metavar="FOLDER", type=click.Path(path_type=Path), help="Lay the files out there.")
@output_options
def command(run: str, folder: Path | None, output: OutputOptions) -> int:
    """List what was saved before a run's steps, from the encrypted copy here; no host is asked.

    `changectl revert` and a host's own dead-man use the copy on the host. This one is for a host that has lost it, or
    that was set up anew. With --to, the files and all that is known of owners, modes, attributes and the process as it
    ran are laid into a new folder, for you alone to read, and the commands that put them back are shown.

    Exit code: 0 all of it; 2 no such run, or the folder is there already; 3 a copy or the key is missing or damaged
    (of a damaged copy the others are laid out all the same).
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.cli._rescue import rescue
    from changectl.reports import saved as report
    from changectl.reports.printer import Printer

    with reading() as record:
        rescued = rescue(record.saved(run), record.snapshot, folder)
    code = 3 if rescued.lost else 0
    if output.json:
        print_document(report.as_json(rescued.found, rescued.lost), Printer(), code)
    else:
        print_blocks(report.as_blocks(rescued.found, rescued.lost), Printer())
    return code
