"""Run the load generator in its own process; nothing of it, and nothing of the job, is written on disk."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import zlib
from typing import IO, Any, Callable, Dict, Iterator, List

from . import commands
from .failure import Failure

Progress = Callable[[Dict[str, Any]], None]
# The child dies with us, whatever kills us; a parent that is already gone is seen by its changed id.
_TIED = (
    "import ctypes,os,sys\n"
    "ctypes.CDLL(None).prctl(1,9)\n"
    "if os.getppid()!=int(sys.argv[1]): sys.exit(9)\n"
    "os.execv(sys.argv[2],sys.argv[2:])\n"
)
_STDERR_KEPT = 4000


def measure(args: Dict[str, Any], progress: Progress) -> Dict[str, Any]:
    """The call: {records: b64 of zlib of JSON lines, count, summary}.

    `generator` is a zip in base64. The job goes to the child's stdin; records come from its stdout, one JSON object per
    line; its stderr carries {"progress": {...}} lines and, at its end, one {"summary": {...}}: what it says about
    itself (when it began, how busy it was, from which address it sent).

    Raises:
        Failure: `generator_failed` when the child ends badly or answers nothing; `timed_out`.
    """
    interpreter = args.get("interpreter") or sys.executable
    with _nameless(_zip(args.get("generator"))) as descriptor:
        process = commands.spawn(
            [sys.executable, "-I", "-c", _TIED, str(os.getpid()), interpreter, f"/proc/self/fd/{descriptor}"],
            env=commands.marked_environment(args.get("run")), cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, pass_fds=[descriptor],
        )  # fmt: skip
        try:
            return _collect(process, args, progress)
        finally:
            commands.finish(process)


def _zip(value: Any) -> bytes:
    try:
        data = base64.b64decode(value or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Failure("bad_arguments", "generator must be base64") from None
    if not data:
        raise Failure("bad_arguments", "generator is missing")
    return data


@contextlib.contextmanager
def _nameless(data: bytes) -> Iterator[int]:
    """A file without a name: it is gone with its last reader, whatever kills us, and no folder has to take it."""
    try:
        descriptor = os.memfd_create("changectl-generator")
    except (AttributeError, OSError):  # an old C library, or a host that allows no such files
        with tempfile.TemporaryFile() as named:
            descriptor = os.dup(named.fileno())
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as target:
            target.write(data)
        yield descriptor
    finally:
        os.close(descriptor)


def _collect(process: subprocess.Popen[bytes], args: Dict[str, Any], progress: Progress) -> Dict[str, Any]:
    heard = _Heard(progress)
    records: List[bytes] = []
    threads = [
        threading.Thread(target=heard.read, args=(process.stderr,), daemon=True),
        threading.Thread(target=_read_records, args=(process.stdout, records), daemon=True),
    ]
    for thread in threads:
        thread.start()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(args.get("job") or {}).encode())
            process.stdin.close()
    timeout = args.get("timeout")
    try:
        process.wait(None if timeout is None else float(timeout))
    except subprocess.TimeoutExpired:
        raise Failure("timed_out", f"the load generator did not end within {timeout} s and was stopped") from None
    for thread in threads:
        thread.join(10)
    tail = "\n".join(heard.errors)[-_STDERR_KEPT:]
    if process.returncode != 0:
        message = f"the load generator ended with status {process.returncode}"
        raise Failure(
            "generator_failed", f"{message}: {tail[-300:]}".strip(": "), stderr=tail, status=process.returncode
        )
    return _answer(records, heard.summary, tail)


def _answer(records: List[bytes], summary: Dict[str, Any], tail: str) -> Dict[str, Any]:
    data = b"".join(records)
    try:
        count = sum(_is_record(json.loads(line)) for line in data.splitlines() if line.strip())
    except ValueError:
        raise Failure("generator_failed", "the load generator's records are damaged", stderr=tail) from None
    if not count:
        raise Failure("generator_failed", "the load generator answered no record", stderr=tail)
    packed = base64.b64encode(zlib.compress(data, 6)).decode("ascii")
    return {"records": packed, "count": count, "summary": summary}


def _is_record(line: Any) -> bool:
    """Whether it is one request's, and not the names of the fields."""
    return not (isinstance(line, dict) and "fields" in line)


def _read_records(stream: IO[bytes], records: List[bytes]) -> None:
    for line in stream:
        records.append(line)  # noqa: PERF402  lines that came before a kill are kept


class _Heard:
    """What the generator says on stderr: progress is passed on, the summary kept, anything else is an error text."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.summary: Dict[str, Any] = {}
        self.errors: List[str] = []

    def read(self, stream: IO[bytes]) -> None:
        """Read until the stream ends."""
        for line in stream:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict) and "progress" in message:
                self._progress(message["progress"])
            elif isinstance(message, dict) and isinstance(message.get("summary"), dict):
                self.summary = message["summary"]
            else:
                self.errors.append(line.decode(errors="replace").rstrip("\n"))
                del self.errors[:-200]
