"""`changectl schema`: JSON Schema for editors."""

from __future__ import annotations

import click

from changectl.cli._options import OutputOptions, example, output_options


@click.command(
    short_help="Print the JSON Schema of plans and services.",
    epilog=example(
        "changectl schema plan > .changectl/plan.schema.json",
        "# and as the first line of a plan, for editors with yaml-language-server:",
        "# yaml-language-server: $schema=../.changectl/plan.schema.json",
    ),
)
@click.argument("what", type=click.Choice(["plan", "service"]))
@output_options
def command(what: str, output: OutputOptions) -> None:  # noqa: ARG001 - the document is JSON with and without --json
    """Print the JSON Schema of a plan or a service.

    Editors complete and check with it (draft 2020-12); `changectl validate` checks more.
    """
    import json

    from changectl import kinds
    from changectl.core.declared import plan, service
    from changectl.reports.printer import Printer

    schema = plan.json_schema(kinds.specs()) if what == "plan" else service.json_schema()
    Printer().line(json.dumps(schema, indent=2))
