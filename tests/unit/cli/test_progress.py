"""What is told while a run goes on reads like its last screen, and its commands can be copied."""

from __future__ import annotations

import io

from changectl.cli._progress import ProgressReporter
from changectl.reports.printer import Printer
from changectl.workflow.secrets import Secrets


def noted(text: str) -> list[str]:
    out, err = io.StringIO(), io.StringIO()
    ProgressReporter(Printer(out, err), Secrets(b"salt", lambda tripwire: None)).note(text)
    assert out.getvalue() == ""
    return err.getvalue().splitlines()


def test_a_breach_is_told_in_words() -> None:
    line = "not kept (regressed): tpot at low: 1ms -> 2s (+9%), less than 1.5 times, or up to 5ms more, breach"

    assert noted(line) == [
        "not kept (regressed): tpot at low: 1ms -> 2s (+9%), beyond the limit "
        "(below 1.5 times the old value, or at most 5ms above it)"
    ]


def test_a_command_stands_on_a_line_of_its_own() -> None:
    assert noted("gpu1: it does not answer; then: changectl recover R1") == [
        "gpu1: it does not answer; then:",
        "  changectl recover R1",
    ]
