"""`changectl init`: a project to start from."""

from __future__ import annotations

from pathlib import Path

import click

from changectl.cli._options import FORMAT, OutputOptions, example, output_options

_NEXT_STEPS = """Next:
  1. write your hosts into inventory/hosts.yml
  2. describe the service in inventory/services/chat.yml
  3. are the hosts fit for changes, and is no service touched by looking:
     changectl doctor
  4. is the plan right, without a host:
     changectl validate changeplans/0001-more-sequences.yml
  5. what would happen on the hosts, where nothing is changed:
     changectl plan changeplans/0001-more-sequences.yml
  6. do it:
     changectl apply changeplans/0001-more-sequences.yml"""


@click.command(
    short_help="Write an example project to start from.",
    epilog=example("changectl init chat-changes && cd chat-changes", "changectl validate changeplans/*.yml"),
)
@click.argument("directory", type=click.Path(path_type=Path), default=Path(), metavar="[DIR]")
@output_options
def command(directory: Path, output: OutputOptions) -> int:
    """Write an example project to start from.

    It has a project file, an inventory, a service, a workload and a plan. Nothing that exists is overwritten: if one
    of the files is there already, nothing is written at all.
    """
    import json

    from changectl.adapters.scaffold import write_project
    from changectl.reports.printer import Printer

    written = [str(path) for path in write_project(directory)]
    printer = Printer()
    if output.json:
        printer.line(json.dumps({"format": FORMAT, "written": written, "exit_code": 0}, indent=2))
        return 0
    for path in written:
        printer.line(f"wrote {path}")
    steps = _NEXT_STEPS if directory == Path() else _NEXT_STEPS.replace("Next:", f"Next, in {directory}:")
    printer.line(f"\n{steps}")
    return 0
