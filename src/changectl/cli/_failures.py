"""The one place that turns errors into exit codes and into what people and programs read."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from changectl.core.errors import ChangectlError, InputError, Problem
from changectl.reports._commands import apart
from changectl.reports.printer import Printer

INTERRUPTED = 130
USAGE = 2
UNEXPECTED = 1


def report(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Say what went wrong and return the exit code.

    On stderr for people; with `as_json` one document on stdout instead.
    """
    if isinstance(error, BrokenPipeError):
        silence()  # who read our output has left
        return UNEXPECTED
    code, reason, message, problems = _facts(error)
    try:
        printer = Printer()
        if debug and code == UNEXPECTED:
            printer.note("".join(traceback.format_exception(error)).rstrip())
        if as_json:
            printer.line(json.dumps(as_document(code, reason, message, problems), indent=2))
        else:
            printer.note(_for_people(error, message), style="red" if code == UNEXPECTED else None)
        sys.stdout.flush()
    except (OSError, ValueError):
        silence()  # nobody can be told; the exit code still can
    return code


def tell(code: int, show: Callable[[], None], where: str) -> int:
    """Show how something ended and return its exit code, which stays what it is whatever happens to the words.

    A reader that left (`| head`), a full disk behind `>`, a record that cannot be read again: what was done is done.

    Args:
        code: how it ended.
        show: prints it.
        where: the command that shows it again.
    """
    try:
        show()
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - whatever it is, it comes after the end
        silence()
        with contextlib.suppress(OSError, ValueError):
            if not isinstance(error, BrokenPipeError):
                why = f"{type(error).__name__}: {error}"
                Printer().note(
                    apart(f"it ended with exit code {code}, but that could not be shown ({why}); see: {where}")
                )
        silence()
    return code


def open_streams() -> None:
    """Have standard streams even where the caller closed them (`>&-`).

    Otherwise the next file that is opened would be number 1, and whatever a child process prints would be written
    into it: into the record, for example.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def silence() -> None:
    """Send what is left in the buffers nowhere, so that Python does not fail on it while it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def as_document(code: int, reason: str, message: str, problems: tuple[Problem, ...]) -> dict[str, Any]:
    """The JSON document of a command that ended with an error."""
    listed = [
        {
            "message": problem.message,
            "file": problem.file,
            "line": problem.line,
            "column": problem.column,
            "path": problem.path,
            "hint": problem.hint,
        }
        for problem in problems
    ]
    return {"error": {"reason": reason, "message": message, "problems": listed}, "exit_code": code}


def _facts(error: BaseException) -> tuple[int, str, str, tuple[Problem, ...]]:
    if isinstance(error, ChangectlError):
        problems = error.problems if isinstance(error, InputError) else ()
        return error.exit_code, error.reason, str(error), problems
    if isinstance(error, click.ClickException):
        return USAGE, "bad_usage", error.format_message().replace("\t", "  "), ()  # click's lists of choices
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, "interrupted", "interrupted", ()
    said = str(error).strip().splitlines()
    message = f"unexpected error: {type(error).__name__}{': ' + said[0] if said else ''}"
    return UNEXPECTED, "unexpected_error", message, ()


def _for_people(error: BaseException, message: str) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return message  # the help itself, which says how it is used
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f"Try '{error.ctx.command_path} --help'."
        return f"{error.ctx.get_usage()}\n{hint}\n\nError: {message}"
    if isinstance(error, ChangectlError | click.ClickException | KeyboardInterrupt | click.Abort):
        return apart(message)
    return f"{message}\nRun the same command with --debug for the traceback."
