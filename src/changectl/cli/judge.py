"""`changectl judge`: a verdict computed once more from its raw records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from changectl.cli._options import OutputOptions, example, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from changectl.core.replaying.policy import Policy
    from changectl.core.replaying.replay import RawTrial


@click.command(
    short_help="Compute a verdict once more.",
    epilog=example("changectl judge 20261130-08", "changectl judge 20261130-08/2 --policy stricter.yml"),
)
@click.argument("run", metavar="RUN[/STEP]")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Other limits (class, slo, accept, expect): what would they have said?",
)
@output_options
def command(run: str, policy_file: Path | None, output: OutputOptions) -> int:
    """Compute the verdict of a run once more: from the stored record of every request, by the terms it was judged by.

    The journal and the digests of the records are checked first. Then every figure of every phase and the verdict with
    all its rows have to be as recorded, to the last bit; else the first one that differs is named. With --policy FILE
    the same phases are judged by other limits too. The record is only read.

    Exit code: 0 the same, 2 usage or file, 3 it differs, or there is nothing whole to compute it from.
    """
    import changectl
    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import reading
    from changectl.core.replaying.replay import replay
    from changectl.reports import judge as report
    from changectl.reports.printer import Printer

    with reading() as record:
        summary, trials = record.raw_trials(run)
        policy = _policy(policy_file, trials)
        found = [replay(trial, policy) for trial in trials]
    shown = None if policy_file is None else str(policy_file)
    code = report.exit_code(found)
    if output.json:
        print_document(report.as_json(summary.run, found, shown), Printer(), code)
    else:
        print_blocks(report.as_blocks(summary, found, shown, changectl.__version__), Printer())
    return code


def _policy(file: Path | None, trials: Sequence[RawTrial]) -> Policy | None:
    """The policy, if one is named. Raises InputError: the file cannot be read, or says what is not understood."""
    from changectl.core.errors import InputError, Problem
    from changectl.core.replaying.policy import load

    if file is None:
        return None
    try:
        content = file.read_bytes()
    except OSError as error:
        hint = "name a file that says for example `version: 1` and `slo: {ttft_user_p95: <= 800ms}`"
        raise InputError(Problem(f"the policy cannot be read: {error.strerror}", str(file), hint=hint)) from error
    return load(content, str(file), levels=dict.fromkeys(name for one in trials for name in one.levels))
