"""`changectl unlock`: break the lock of a holder that is gone and cannot be seen to be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from changectl.cli._options import OutputOptions, example, output_options

if TYPE_CHECKING:
    from changectl.store.locks import Held


@click.command(
    short_help="Break the lock of a run whose machine is gone.",
    epilog=example('changectl unlock chat --reason "the CI job\'s container was killed, OPS-79"'),
)
@click.argument("service")
@click.option("--reason", required=True, help="How you know that the holder is gone; goes into the record.")
@output_options
def command(service: str, reason: str, output: OutputOptions) -> int:
    """Break the lock of a service whose holder is gone: its container was killed, its machine was deleted.

    A lock whose process ended on this machine needs no such thing: the next run takes it over. One elsewhere is never
    taken over by itself, since two runs at once would spoil the service. Make sure that the process does not run any
    more, then say so here. Refused while it certainly runs on this machine. No host is touched.

    Exit code: 0 broken, or nobody held it; 2 no such service; 3 the holder is alive.
    """
    from changectl.cli._present import print_document
    from changectl.cli._record import check_word, reading
    from changectl.core.errors import InputError
    from changectl.reports._commands import apart
    from changectl.reports.printer import Printer

    if not reason.strip():
        raise InputError("say how you know that the holder is gone: --reason TEXT")
    with reading() as record:
        held = record.break_lock(service, reason)
        names = [one.service for one in record.services()]
    if held is None:
        check_word("changed service", service, names)
    if output.json:
        print_document({"format": 1, "service": service, "broken": held and _document(held)}, Printer())
        return 0
    if held is None:
        Printer().line(f"nobody holds the lock of service {service}")
        return 0
    printer = Printer()
    printer.line(f"broke the lock of service {service}: {held}")
    printer.line(apart(f"what that run left behind is not known; look: changectl status {service}"))
    printer.line(apart(f"then settle it: changectl recover {held.run}"))
    return 0


def _document(held: Held) -> dict[str, Any]:
    return {"run": held.run, "owner": held.owner, "since": held.since, "host": held.holder.host, "pid": held.holder.pid}
