"""The host has a Python that the host program runs on."""

from __future__ import annotations

import re

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 4
CHECK = Check("host_python", "required")
OLDEST = (3, 8)


def check(situation: Situation) -> CheckResult:
    """The version that answered."""
    if situation.hello is None:
        return CHECK.unknown("the host program did not answer")
    text = situation.hello.python
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        return CHECK.unknown(f"not a Python version: {text!r}")
    if (int(match[1]), int(match[2])) < OLDEST:
        return CHECK.failed(
            f"Python {text} is too old", "install Python 3.8 or newer, or set ansible_python_interpreter", text
        )
    return CHECK.passed("new enough", figure=f"Python {text}")
