"""The lab's llama.cpp launcher: the product's own, with the faults of `launcher_faults.py` put into it."""

from __future__ import annotations

from pathlib import Path

FAULTS = Path(__file__).with_name("launcher_faults.py")
_MAIN = 'if __name__ == "__main__":\n'
_FUTURE = "from __future__ import annotations\n"  # it stands once, at the top


def added_to(launcher: str) -> str:
    """Return the launcher's text with the faults; what starts it stays last.

    Raises:
        ValueError: it has no main part to put them before.
    """
    before, main, after = launcher.rpartition(_MAIN)
    if not main:
        raise ValueError("the launcher has no main part")
    code = FAULTS.read_text(encoding="utf-8").partition(_FUTURE)[2]
    return f"{before}{code.lstrip()}\n\n{main}{after}"
