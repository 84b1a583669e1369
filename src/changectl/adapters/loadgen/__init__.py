"""The load generator: a self-contained program that sends requests and stamps what comes back.

It runs in its own process on any caller's host with Python 3.8: `build_zip` packs it with h11, the load protocols and
nothing else. The job comes as JSON on stdin (headers may hold a token, so never by arguments); stdout carries one JSON
line per request; stderr carries JSON lines: `{"progress": ...}`, at the end `{"summary": ...}`, and `{"error": ...}`.
Exit status: 0 everything was sent and recorded, 2 the job is not usable, 3 it was stopped before the end.
"""


def build_zip() -> bytes:
    """The program as the bytes of a zip that `python3 FILE` runs; the same bytes every time."""
    from changectl.adapters.loadgen.bundle import build_zip as build  # the packed program has no use for it

    return build()
