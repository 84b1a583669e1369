"""What a doctor found: for each host the checks with their figures, and what to do where one is not in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from changectl.core.doctor.examination import Examination, exit_code
from changectl.core.doctor.facts import Check, Proof, State
from changectl.reports._blocks import Block, Heading, Line, Tone
from changectl.reports._commands import told
from changectl.reports._runs import FORMAT

_TONES: dict[State, Tone] = {"ok": "good", "advice": "warning", "failed": "bad", "unknown": "warning"}


def as_json(examinations: Sequence[Examination]) -> dict[str, Any]:
    """The document of `changectl doctor --json`."""
    return {
        "format": FORMAT,
        "hosts": [
            {
                "host": one.host,
                "state_dir": one.state_dir,
                "role": "caller" if one.sends_only else "changed",
                "sound": not one.findings,
                "checks": [_check(check) for check in one.checks],
                "proof": None if one.proof is None else _proof(one.proof),
            }
            for one in examinations
        ],
        "exit_code": exit_code(examinations),
    }


def _check(check: Check) -> dict[str, Any]:
    return {"name": check.name, "state": check.state, "required": check.required, "figure": check.figure,
            "todo": check.todo, "because": check.because or None}  # fmt: skip


def _proof(proof: Proof) -> dict[str, Any]:
    return {"state": proof.state, "late_seconds": proof.late, "restore_seconds": proof.seconds, "keeper": proof.keeper,
            "reboot_safe": proof.reboot_safe, "left": list(proof.left)}  # fmt: skip


def as_blocks(examinations: Sequence[Examination]) -> list[Block]:
    """What people read."""
    return [block for one in examinations for block in _host(one)]


def _host(one: Examination) -> list[Block]:
    place = f" ({one.state_dir})" if one.state_dir else ""
    count = len([check for check in one.findings if not check.because])
    fit = "fit to send load" if one.sends_only else "fit for changes"
    verdict = fit if not one.findings else f"{count} {'finding' if count == 1 else 'findings'}"
    blocks: list[Block] = [Heading(f"{one.host}{place}: {verdict}")]
    for check in one.checks:
        if not check.because:
            blocks += _lines(check)
    causes = dict.fromkeys(check.because for check in one.checks if check.because)
    for cause in causes:
        names = ", ".join(check.name for check in one.checks if check.because == cause)
        blocks.append(Line(f"not looked at because of {cause}: {names}", "quiet"))
    return blocks


def _lines(check: Check) -> list[Block]:
    word = check.state if check.required or check.state in ("ok", "advice") else f"{check.state}, only advice"
    lines = told(f"{check.name}: {word}: {check.figure}", _TONES[check.state])
    if check.state != "ok" and check.todo:
        lines += told(check.todo, mark="- ")
    return lines
