"""The one place that turns errors into exit codes and into what people and programs read."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import click

from changectl.core.errors import ChangectlError, InputError, Problem
from changectl.reports.printer import Printer

INTERRUPTED = 130
USAGE = 2
UNEXPECTED = 1


def report(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Say what went wrong and return the exit code.

    On stderr for people; with `as_json` one document on stdout instead.
    """
    if isinstance(error, BrokenPipeError):
        # Who read our output has left; Python must not complain about it while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNEXPECTED
    code, reason, message, problems = _facts(error)
    printer = Printer()
    if debug and code == UNEXPECTED:
        printer.note("".join(traceback.format_exception(error)).rstrip())
    if as_json:
        printer.line(json.dumps(as_document(code, reason, message, problems), indent=2))
    else:
        printer.note(_for_people(error, message), style="red" if code == UNEXPECTED else None)
    return code


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
        return USAGE, "bad_usage", error.format_message(), ()
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, "interrupted", "interrupted", ()
    said = str(error).strip().splitlines()
    message = f"unexpected error: {type(error).__name__}{': ' + said[0] if said else ''}"
    return UNEXPECTED, "unexpected_error", message, ()


def _for_people(error: BaseException, message: str) -> str:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f"Try '{error.ctx.command_path} --help'."
        return f"{error.ctx.get_usage()}\n{hint}\n\nError: {message}"
    if isinstance(error, ChangectlError | click.ClickException | KeyboardInterrupt | click.Abort):
        return message
    return f"{message}\nRun the same command with --debug for the traceback."
