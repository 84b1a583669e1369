"""`changectl show`: the story of one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from changectl.cli._options import OutputOptions, example, output_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from changectl.cli._record import Record
    from changectl.core.history.reading import RunStory
    from changectl.core.measuring.records import Record as RequestRecord


@click.command(
    short_help="Tell the story of one run.",
    epilog=example("changectl show 20261130-08", "changectl show 20261130-08 --html run.html"),
)
@click.argument("run", metavar="RUN[/STEP]")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it as one page with drawings into that new file; `-`: to stdout.",
)
@output_options
def command(run: str, page: Path | None, output: OutputOptions) -> int:
    """Tell the story of a run: what, why, who, the difference, before and after, the reasons, what happened when.

    The beginning of RUN is enough where it is the only one that begins so; RUN/2 tells of its second step alone.

    --html writes a page to keep, print or send: distributions and phases before and after, stages, host, reasons. It is
    one file without scripts that fetches nothing.
    """
    from changectl.cli._new_file import write_new
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.reports import show as report
    from changectl.reports.printer import Printer

    if output.json and str(page) == "-":
        raise click.UsageError("--json and --html - would both go to stdout: name a file for the page")
    with reading() as record:
        story, step = record.story(run)
        if page is not None:
            text = _page(record, story, step)
            if str(page) == "-":
                click.echo(text, nl=False)
            else:
                write_new(page, text, private=True, hint="name another file, or remove this one first")
    if output.json:
        print_document(report.as_json(story, step), Printer())
    elif page is None:
        print_blocks(report.as_blocks(story, step), Printer())
    elif str(page) != "-":
        Printer().line(f"{page}: open it in a browser; it holds everything and fetches nothing")
    return 0


def _page(record: Record, story: RunStory, step: int | None) -> str:
    import changectl
    from changectl.core.errors import ChangectlError
    from changectl.core.history.events import text_of
    from changectl.core.measuring.measurement import parse_records
    from changectl.reports import html

    raw: dict[str, Iterable[RequestRecord]] = {}
    lost: dict[str, None] = {}
    bodies = [body for one in story.steps if step in (None, one.summary.number) for body in one.measurements]
    for digest in dict.fromkeys(text_of(body, "blob") for body in bodies if text_of(body, "blob")):
        try:
            raw[digest] = parse_records(record.blob(digest).decode())
        except (ChangectlError, ValueError) as error:
            lost[f"raw records are missing from the drawings: {error}"] = None
    return html.as_page(story, step, raw, list(lost), changectl.__version__)
