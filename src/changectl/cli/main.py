"""The command `changectl`. Every other file of this folder whose name has no underscore in front is one command."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

import changectl
from changectl import cli
from changectl.cli import _completion, _failures
from changectl.core.errors import InputError, Problem

if TYPE_CHECKING:
    from changectl.cli._around import Around

_NOT_COMMANDS = frozenset({"main", "wiring"})

_EPILOG = """\b
Examples:
  changectl init                              a project to start from
  changectl validate changeplans/0001-*.yml   no host is touched
  changectl plan changeplans/0001-*.yml       looks at hosts, changes nothing
  changectl apply changeplans/0001-*.yml      changes, judges, keeps or restores

\b
Exit codes: 0 kept or nothing to do, 1 unexpected, 2 usage or files,
3 refused and nothing changed, 4 not kept for cause, 5 not kept for lack of
evidence, 6 a person is needed, 7 another change is open, 9 the host restores
itself, 130 interrupted.

\b
Completion for bash (zsh and fish likewise), in ~/.bashrc:
  eval "$(_CHANGECTL_COMPLETE=bash_source changectl)"
"""


class CommandFolder(click.Group):
    """Commands by file: a new command is one new file that has `command`. Loaded when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands' names: `audit_verify.py` is `audit-verify`."""
        files = (info.name for info in pkgutil.iter_modules(cli.__path__))
        return sorted(name.replace("_", "-") for name in files if name[0] != "_" and name not in _NOT_COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; of a command that there is not, with the one that was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = get_close_matches(args[0], self.list_commands(ctx), n=1, cutoff=0.5)
            if not close or args[0][:1] == "-":
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. Did you mean '{close[0]}'?", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None: there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = import_module(f"{cli.__name__}.{cmd_name.replace('-', '_')}").command
        return _completion.attach(command)


@click.group(cls=CommandFolder, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(changectl.__version__, prog_name="changectl", message="%(prog)s %(version)s")
def command() -> None:
    """Change one thing on an AI inference service, judge it under the same conditions, and have the old state back.

    A plan names one service, one change and what it is expected to do. Applying it saves the present state and proves
    that the way back works, measures, changes, measures again, and keeps the change or brings the old state back.
    """


def main(arguments: Sequence[str] | None = None, *, around: Around | None = None) -> int:
    """Run a command line (the process's own by default) and return the exit code; `around` is for tests of crashes."""
    _failures.open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    try:
        result = command.main(args=given, prog_name="changectl", standalone_mode=False, obj=around)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as caught:  # noqa: BLE001 - here every error becomes an exit code
        error = _without_folder(caught) or caught
        return _failures.report(error, as_json="--json" in options, debug="--debug" in options)
    return result if isinstance(result, int) else 0


def _without_folder(error: BaseException) -> InputError | None:
    """What is really the matter where a command failed since its working directory was deleted; None: it is there."""
    if not isinstance(error, FileNotFoundError | InputError):
        return None
    try:
        Path.cwd()
    except OSError as gone:
        message = f"the working directory cannot be used any more: {gone.strerror}"
        return InputError(Problem(message, hint="change to the project's folder, by its path"))
    return None


if __name__ == "__main__":
    sys.exit(main())
