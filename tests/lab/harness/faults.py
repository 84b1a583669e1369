"""Faults that the lab's llama.cpp launcher can be given by openly named settings: stand-ins for real ones.

No engine from a registry leaks memory on request. So the lab's copy of the launcher, and no other, reads
`LAB_FAULT_...` variables, says at its start that it is a stand-in, and does what they say.
"""

from __future__ import annotations

_MAIN = 'if __name__ == "__main__":\n'
_CODE = '''
def lab_fault_leak(setting: str) -> None:
    """A stand-in for an engine that leaks: `8@20` is 8 MB a second, from 20 s after the start on."""
    import threading
    import time

    rate, _, begin = setting.partition("@")
    sys.stderr.write(f"lab: a stand-in for a leak: {rate} MB a second, from {begin or 0} s after the start on\\n")
    leaked: list[bytes] = []

    def leak() -> None:
        time.sleep(float(begin or 0))
        while True:
            leaked.append(b"x" * int(float(rate) * 1e5))
            time.sleep(0.1)

    threading.Thread(target=leak, daemon=True).start()


if os.environ.get("LAB_FAULT_LEAK"):
    lab_fault_leak(os.environ["LAB_FAULT_LEAK"])
'''


def added_to(launcher: str) -> str:
    """Return the launcher's text with the faults; what starts it stays last.

    Raises:
        ValueError: it has no main part to put them before.
    """
    before, main, after = launcher.rpartition(_MAIN)
    if not main:
        raise ValueError("the launcher has no main part")
    return f"{before}{_CODE.lstrip()}\n\n{main}{after}"
