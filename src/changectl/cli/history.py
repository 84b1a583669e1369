"""`changectl history`: the runs of a project, newest first."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="List past runs, the newest first.",
    epilog=example("changectl history --service chat --since 7d", "changectl history --outcome reverted --json"),
)
@click.option("--service", metavar="NAME", help="Only runs of this service.")
@click.option("--host", metavar="NAME", help="Only runs on this host.")
@click.option("--outcome", metavar="WORD", help="Only this outcome: kept, reverted, refused, open, ...")
@click.option("--verdict", metavar="WORD", help="Only this verdict: improved, regressed, ...")
@click.option("--since", metavar="TIME", help="Not before: 2026-11-30, 2026-11-30T08:15 (UTC), or 7d, 12h, 30m ago.")
@click.option("--until", metavar="TIME", help="Not after; a date means all of that day.")
@click.option("--actor", metavar="WHO", help="Only runs by this user, or user@host.")
@click.option("--change", metavar="NAME", help="Only changes of this parameter or variable, in any spelling.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most so many runs.")
@output_options
def command(
    service: str | None,
    host: str | None,
    outcome: str | None,
    verdict: str | None,
    since: str | None,
    until: str | None,
    actor: str | None,
    change: str | None,
    limit: int | None,
    output: OutputOptions,
) -> int:
    """List what was changed: when, what, by whom, why, and what became of it. The newest run comes first."""
    from datetime import UTC, datetime

    from changectl.cli._present import print_blocks, print_document
    from changectl.cli._record import check_word, reading
    from changectl.cli._spellings import alike
    from changectl.core.history.reading import OPEN, OUTCOMES, Filters, choose, moment
    from changectl.core.judging.judgement import Verdict
    from changectl.reports import history as report
    from changectl.reports.printer import Printer

    now = datetime.now(UTC)
    filters = Filters(
        service=service,
        host=host,
        outcome=check_word("outcome", outcome, (*OUTCOMES, OPEN, "not_started")),
        verdict=check_word("verdict", verdict, tuple(Verdict)),
        since=moment(since, now) if since else None,
        until=moment(until, now, end=True) if until else None,
        actor=actor,
        change=change,
        alike=alike(change) if change else (),
        limit=limit,
    )
    with reading() as record:
        runs = record.runs()
    found = choose(runs, filters)
    if output.json:
        print_document(report.as_json(found), Printer())
    else:
        print_blocks(report.as_blocks(found, len(runs)), Printer())
    return 0
