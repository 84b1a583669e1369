"""`changectl compare`: two runs held against each other under the gates of a trial."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="Hold two runs against each other.",
    epilog=example(
        "changectl compare 20261123-09 20261130-08",
        "changectl compare 20261130-08:A 20261130-14:A --host gpu1",
    ),
)
@click.argument("run", metavar="RUN[/STEP][:A|:B]")
@click.argument("other", metavar="RUN[/STEP][:A|:B]")
@click.option("--host", metavar="NAME", help="The instance, where both runs measured several.")
@output_options
def command(run: str, other: str, host: str | None, output: OutputOptions) -> int:
    """Hold the second run against the first one, if they may be compared at all.

    Of each run the configuration that it left in force is taken: the new one where it was kept, else the saved one; :A
    means the saved one, :B the new one. The gates are those of a trial: one service and instance, sound measurements,
    at most a single difference in the conditions, the same load, reached, the same cache state, input and work. Each
    that fails is named with the reason, and then there is no verdict. Else it says gross harm or none, never a gain:
    phases that were not measured in turns cannot tell one from a host that drifts.

    Exit code: 0 they may be compared, 2 usage, 3 they may not, or their raw records are not whole.
    """
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.core.replaying.comparing import compare
    from changectl.core.replaying.replay import common_host, side_of
    from changectl.reports import compare as report
    from changectl.reports.printer import Printer

    with reading() as record:
        read = [(letter, *record.raw_trials(text)) for text, letter in map(_configuration, (run, other))]
        host = common_host([trials for *_, trials in read], host)
        before, after = (side_of(summary, trials, host, letter) for letter, summary, trials in read)
    found = compare(before, after)
    code = report.exit_code(found)
    if output.json:
        print_document(report.as_json(found), Printer(), code)
    else:
        print_blocks(report.as_blocks(found), Printer())
    return code


def _configuration(text: str) -> tuple[str, str | None]:
    """The run and the configuration that are meant. Raises InputError."""
    from changectl.core.errors import InputError, Problem

    run, colon, letter = text.partition(":")
    if colon and letter not in ("A", "B"):
        hint = f"write {run}:A for the saved configuration, {run}:B for the new one"
        raise InputError(Problem(f'"{letter}" is no configuration of a run', hint=hint))
    return run, letter or None
