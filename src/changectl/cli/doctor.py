"""`changectl doctor`: are hosts fit for changes, and do they really bring themselves back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from changectl.cli._options import HostOptions, OutputOptions, example, host_options, output_options

if TYPE_CHECKING:
    from changectl.core.doctor.examination import Examination


@click.command(
    short_help="Look whether hosts are fit for changes.",
    epilog=example("changectl doctor", "changectl doctor gpu1", "changectl doctor gpu -K --json > doctor.json"),
)
@click.argument("host", metavar="[HOSTS]...", nargs=-1)
@host_options
@output_options
def command(host: tuple[str, ...], hosts: HostOptions, output: OutputOptions) -> int:
    """Look at hosts or groups (default: what services need, else all) before the first change, or after trouble.

    Everything that a change needs there is tried and listed: the way in, sudo, Python, the state folder, systemd, what
    earlier runs left. And the dead-man is proven: it is armed on a scratch file, the file is changed, nobody gives a
    sign of life, and two seconds later the saved bytes have to be back. No service is touched, and all of it is taken
    away again.

    Exit code: 0 sound, 2 usage, 3 findings: something required failed, or could not be looked at.
    """
    import json

    from changectl.cli._clinic import look_at_all
    from changectl.cli._failures import tell
    from changectl.cli._present import print_blocks
    from changectl.core.doctor.examination import exit_code
    from changectl.reports import doctor as report
    from changectl.reports.printer import Printer

    printer = Printer()
    found: list[Examination] = look_at_all(host, hosts, printer)

    def show() -> None:
        if output.json:
            printer.line(json.dumps(report.as_json(found), indent=2))
        else:
            print_blocks(report.as_blocks(found), printer)

    return tell(exit_code(found), show, "changectl doctor")
