"""`changectl audit`: check the record against itself and against what hosts witness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from changectl.cli._options import HostOptions, OutputOptions, example, host_options, output_options

if TYPE_CHECKING:
    from changectl.core.audit.verdict import Audit
    from changectl.core.audit.witness import Witnesses
    from changectl.core.declared.project import Project


@click.command(
    short_help="Check that the record is whole.",
    epilog=example(
        "changectl audit verify",
        "changectl audit verify --hosts --json > audit.json",
        "changectl audit verifier > verify.py",
    ),
)
@click.argument("what", type=click.Choice(["verify", "verifier"]))
@click.option("--hosts", "ask", is_flag=True, help="Ask every host of the inventory what it was told of the record.")
@click.option("--witness", type=click.Path(path_type=Path), metavar="FILE", help="The same from a file, as JSON.")
@host_options
@output_options
def command(what: str, ask: bool, witness: Path | None, hosts: HostOptions, output: OutputOptions) -> int:
    """Check the record: one unbroken chain, every closed run told to its end, evidence there, a host that vouches.

    `verify` says which of three words hold: linked, complete, witnessed up to an event. Nothing is written, neither
    here nor on a host, and runs that go on meanwhile do not disturb it. `verifier` prints a program of one file that
    comes to the same verdict without changectl: Python 3.8, standard library only.

    Exit code: 0 sound as far as was checked, 2 there is no record, 3 findings.
    """
    from changectl.adapters.project_files import find_project

    if what == "verifier":
        if ask or witness or output.json:
            raise click.UsageError("`audit verifier` only prints the program: give the options to `audit verify`")
        _print_verifier()
        return 0
    project = find_project(Path.cwd(), hosts.inventory)
    # The hosts first: whatever they were told by now has to stand in the journal when it is read.
    return _show(examine(project, _witnesses(project, hosts, witness, ask=ask)), project, as_json=output.json)


def _print_verifier() -> None:
    import importlib.resources

    text = (importlib.resources.files("changectl.store") / "verifier.py").read_text(encoding="utf-8")
    click.echo(text, nl=False)


def _show(audit: Audit, project: Project, *, as_json: bool) -> int:
    import json

    from changectl.adapters.project_files import show
    from changectl.cli._failures import tell
    from changectl.cli._present import print_blocks
    from changectl.reports import audit as report
    from changectl.reports.printer import Printer

    def present() -> None:
        if as_json:
            Printer().line(json.dumps(report.as_json(audit), indent=2))
        else:
            print_blocks(report.as_blocks(audit, show(Path(project.database))), Printer())

    return tell(audit.exit_code, present, "changectl audit verify")


def examine(project: Project, witnesses: Witnesses) -> Audit:
    """The audit of a project's record. Raises InputError: there is none, and nobody witnesses that there was one."""
    from changectl.adapters.project_files import show
    from changectl.core.audit.journal import Account
    from changectl.core.audit.verdict import judge
    from changectl.core.errors import InputError, Problem
    from changectl.store.auditing import audit

    path = Path(project.database)
    if path.exists():
        return audit(path, Path(project.key_file), witnesses)
    if witnesses.all():
        return judge(Account(), (), witnesses)
    hint = "nothing was recorded in this project yet, or this is another folder"
    raise InputError(Problem(f"there is no record at {show(path)}", hint=hint))


def _witnesses(project: Project, hosts: HostOptions, file: Path | None, *, ask: bool) -> Witnesses:
    from changectl.core.audit.witness import Witnesses

    found = Witnesses() if file is None else _read(file)
    if ask:
        from changectl.cli._witnesses import ask_hosts
        from changectl.cli.wiring import all_hosts
        from changectl.core.errors import InputError
        from changectl.store.auditing import newest_event

        addresses, doors = all_hosts(hosts)
        if not addresses:
            raise InputError("there is no host to ask: the inventory names none, or --limit leaves none")
        found += ask_hosts(addresses, doors, newest_event(Path(project.database)))
    return found


def _read(file: Path) -> Witnesses:
    import json

    from changectl.adapters.project_files import read_bytes, show
    from changectl.core.audit.witness import read_document
    from changectl.core.errors import InputError, Problem

    try:
        return read_document(json.loads(read_bytes(file)))
    except (ValueError, RecursionError):
        raise InputError(Problem("is no JSON", show(file), hint="write what --hosts --json printed")) from None
