#!/usr/bin/env python3
"""Checks a changectl record without changectl: one file, Python 3.8 or newer, standard library only.

    python3 verify.py changectl.db [--blobs FOLDER] [--snapshots FOLDER] [--witness heads.json] [--json]

The database is opened read-only. Three words make the verdict, each says something else:
linked    every event is there, unchanged and in its place
complete  linked; what every closed run began has its outcome; evidence and saved configurations are there
witnessed up to event N  a host knows event N, so nobody rewrote or removed what came before it
Saved configurations are encrypted: that they are there is checked, not what they hold.
Exit status: 0 sound as far as was checked, 3 findings, 2 not usable.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sqlite3
import sys
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

APPLICATION_ID, NEWEST = 0x63686374, 1
GUARDS = {  # SHA-256 of each trigger's text, blanks made one
    "event_only_appends": "7c5f5992872c3cfcf4736b9f1b77aa55a3b35b29fed656aaa77e6d68c019c5d6",
    "event_keeps_hashes_apart": "73503d3bdd88f17b2878946e6d77c04f0d0769410db614c246d8e53eddbf8df3",
    "event_never_changes": "c414e5b55a4a4e79de0fd07a01516da7a5fc05707697208f3e0a42f1467f8f47",
    "event_never_goes": "235a9f5efe8daae3d56322c2f8e334dc67d4cea49df14ea32b6104576ca4e841",
}
ROWS = """
SELECT sequence, CAST(prev AS BLOB), CAST(run AS BLOB), step, CAST(kind AS BLOB), CAST(at AS BLOB), CAST(body AS BLOB),
  CAST(hash AS BLOB), typeof(prev) || typeof(run) || typeof(step) || typeof(kind) || typeof(at) || typeof(body) ||
  typeof(hash)
FROM event ORDER BY sequence
"""
TYPES = "texttextintegertexttextblobtext"
ANNOUNCED = ("capture", "write", "restart", "restore", "measure")
UNLINKED = {"missing_event", "broken_link", "changed_event", "malformed_event", "damaged_database"}
BESIDE = {"guard_missing", "not_witnessed"}
DIGEST = re.compile(r"[0-9a-f]{64}")


class Unusable(Exception):
    """What was given is no record, or no file of heads."""


class _Record:
    """What was read, and what is wrong with it."""

    def __init__(self) -> None:
        self.findings: list[tuple[str, int, str]] = []  # problem, event, message
        self.hashes: dict[int, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.references: dict[tuple[str, str], int] = {}  # (blob or snapshot, digest): first event that names it
        self.armed: list[tuple[int, str, set[str], str]] = []  # event, run, how its host may name it, host
        self.last, self.prev = 0, "0" * 64

    def found(self, problem: str, event: int, message: str) -> None:
        self.findings.append((problem, event, message))

    def add(self, row: Any) -> None:
        sequence, prev, run, step, kind, at, body, digest, types = row
        covered = [part or b"" for part in (prev, run, str(step).encode(), kind, at, body)]
        hashed = hashlib.sha256(b"changectl event 1\n" + b"".join(b"%d:%s" % (len(part), part) for part in covered))
        prev, run, kind, at, digest = (_decode(part) for part in (prev, run, kind, at, digest))
        if types != TYPES or any("\udc80" <= letter <= "\udcff" for letter in prev + run + kind + at + digest):
            self.found("malformed_event", sequence, "holds what changectl never writes")
        if sequence != self.last + 1:
            self.found("missing_event", sequence, f"follows event {self.last}: what lay between is missing")
        if prev != self.prev:
            self.found("broken_link", sequence, "does not follow the event before it")
        if digest != hashed.hexdigest():
            self.found("changed_event", sequence, "is not what was recorded")
        self.last, self.prev, self.hashes[sequence] = sequence, digest, digest
        self._read(sequence, run, step, kind, self._object(sequence, body or b""))

    def _object(self, sequence: int, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body.decode())
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        self.found("malformed_event", sequence, "has a body that is no JSON object")
        return {}

    def _read(self, sequence: int, name: str, step: int, kind: str, body: dict[str, Any]) -> None:
        run = self.runs.setdefault(name, {"opened": 0, "closed": 0, "death": 0, "hosts": [], "begun": []})
        action, _, part = kind.rpartition(".")
        if part == "intent":
            run["begun"].append((step, action, _text(body, "host"), sequence, _text(body, "folder")))
        elif part == "outcome":
            self._outcome(run, sequence, name, step, action, body)
        elif kind == "run.opened":
            hosts = body.get("hosts")
            run["opened"] = sequence
            run["hosts"] = [host for host in hosts if isinstance(host, str)] if isinstance(hosts, list) else []
        elif kind == "run.closed":
            run["closed"] = sequence
        if kind in ("lock.taken_over", "recover.started"):
            run["death"] = sequence  # from here on it is on record that the program died before
        head = body.get("head")
        if action in ("arm", "disarm") and isinstance(head, dict):
            number, digest = head.get("sequence"), head.get("hash")
            if isinstance(number, int) and isinstance(digest, str) and self.hashes.get(number) != digest:
                self.found("rewritten", sequence, f"says that event {number} was another one")

    def _outcome(
        self, run: dict[str, Any], sequence: int, name: str, step: int, action: str, body: dict[str, Any]
    ) -> None:
        host = _text(body, "host")
        same = [one for one in run["begun"] if one[:2] == (step, action)]
        fitting = [one for one in same if one[2] == host] or [one for one in same if not (one[2] and host)]
        if fitting:
            run["begun"].remove(fitting[-1])
        elif action in ANNOUNCED:
            self.found("outcome_without_intent", sequence, "tells the end of what no event announced")
        if action == "arm" and body.get("armed") is True and fitting:  # that intent is the head the host was given
            folder = fitting[-1][4]
            names = {folder} if folder else {name, f"{name}.{step}", f"{name}/{step}"}
            self.armed.append((sequence, name, names, host))
        for what, field in [("blob", "blob"), ("snapshot", "copy")] + [("blob", "model")] * (action == "capture"):
            if DIGEST.fullmatch(_text(body, field)):
                self.references.setdefault((what, _text(body, field)), sequence)

    def check_ends(self) -> None:
        for name, run in self.runs.items():
            for step, action, host, sequence, _ in run["begun"]:
                if run["death"] < sequence < run["closed"]:
                    where = f" on {host}" if host else ""
                    text = f"has no outcome: {action}{where} in step {step} of run {name}, which is closed"
                    self.found("intent_without_outcome", sequence, text)

    def check_kept(self, blobs: Path, snapshots: Path) -> None:
        for (what, digest), sequence in self.references.items():
            try:
                data = ((blobs if what == "blob" else snapshots) / digest[:2] / digest).read_bytes()
            except OSError as error:
                self.found(f"{what}_missing", sequence, f"names {digest}, which cannot be read: {error.strerror}")
                continue
            if not (_good_blob(data, digest) if what == "blob" else _good_form(data)):
                self.found(f"{what}_changed", sequence, f"names {digest}, which is not what was kept")

    def hear(self, hosts: dict[str, list[dict[str, Any]]], asked_at: int | None) -> int | None:
        """The newest event that a host knows, before the first break; None: no host knows any.

        A host is not expected to know what is older than all that it remembers, nor what came after it was asked.
        """
        breaks = [event for problem, event, _ in self.findings if problem in UNLINKED]
        good = [head for heads in hosts.values() for head in heads if self._holds(head)]
        known = {head["run"] for heads in hosts.values() for head in heads}
        for sequence, name, names, host in self.armed:
            if names & known:
                continue
            host, upstream, _ = host.partition(" (upstream ")  # the record names a balancer's host so
            asked = [host] if upstream or host in hosts else self.runs[name]["hosts"]
            spans = [sorted(head["sequence"] for head in hosts[one]) or [0] for one in asked if one in hosts]
            ends = [(span[0], span[-1] if asked_at is None else asked_at) for span in spans]
            if asked and len(ends) == len(asked) and all(first <= sequence <= last for first, last in ends):
                self.found("not_witnessed", sequence, "says that a host was armed that knows nothing of it")
        return max((head["sequence"] for head in good if not breaks or head["sequence"] < min(breaks)), default=None)

    def _holds(self, head: dict[str, Any]) -> bool:
        number, run = head["sequence"], head["run"]
        if number == 0 or self.hashes.get(number) == head["hash"]:
            return True
        if run not in self.runs and re.sub(r"([./]\d+)+$", "", run) not in self.runs:
            self.found("unknown_run", number, f"is known to a host from run {run}, which is not in this journal")
        elif number > self.last:
            self.found("lines_gone", number, f"is known to a host, and the journal ends with event {self.last}")
        else:
            self.found("rewritten", number, "is another one than a host was told")
        return False


def _decode(part: bytes | None) -> str:
    return (part or b"").decode("utf-8", "surrogateescape")


def _text(body: dict[str, Any], name: str) -> str:
    found = body.get(name)
    return found if isinstance(found, str) else ""


def _good_blob(data: bytes, digest: str) -> bool:
    try:
        return hashlib.sha256(zlib.decompress(data)).hexdigest() == digest
    except zlib.error:
        return False


def _good_form(data: bytes) -> bool:
    header = b"changectl snapshot 1\n"
    return data.startswith(header) and len(data) >= len(header) + 12 + 16  # nonce and tag


def _read_journal(path: Path, record: _Record) -> None:
    if not path.is_file():
        raise Unusable(f"there is no file {path}")
    # On a medium where nobody may write, a database without a log can only be read as one that nobody changes.
    lone = not path.with_name(f"{path.name}-wal").exists() and not os.access(path.parent, os.W_OK)
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if lone else ''}"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
        try:
            connection.execute("BEGIN")  # one view, whatever others append meanwhile
            if _is_ours(connection, path):
                _read_all(connection, record)
        finally:
            connection.close()
    except sqlite3.Error as error:
        if not any(word in str(error) for word in ("malformed", "no such table", "no such column")):
            raise Unusable(f"{path} cannot be read: {error}") from None
        record.found("damaged_database", record.last + 1, f"and what follows cannot be read: {error}")


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether there is a journal in it; an empty database is a record of nothing."""
    version, application, objects = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
    )
    if application != APPLICATION_ID and (objects or version):
        raise Unusable(f"{path} is no database of changectl")
    if version > NEWEST:
        raise Unusable(f"{path} has version {version}, this program knows {NEWEST}: take that of a newer changectl")
    return bool(version)


def _read_all(connection: sqlite3.Connection, record: _Record) -> None:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    there = {name: hashlib.sha256(" ".join(sql.split()).encode()).hexdigest() for name, sql in rows}
    for name in {**GUARDS, **there}:
        if there.get(name) != GUARDS.get(name):
            record.found("guard_missing", 0, f"the trigger {name} is not as it was made")
    for row in connection.execute(ROWS):
        record.add(row)
    said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if said != "ok":
        record.found("damaged_database", record.last + 1, said)


def _read_heads(path: str) -> tuple[dict[str, list[dict[str, Any]]], int | None]:
    """What hosts know, and the journal's newest event when they were asked, if the file says so."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        hosts = {
            host: [head for head in heads if (head.get("sequence"), head.get("hash")) != (None, None)]
            for host, heads in document["hosts"].items()
        }
        heads = [head for heads in hosts.values() for head in heads]
        if not all((type(one["sequence"]), type(one["hash"]), type(one["run"])) == (int, str, str) for one in heads):
            raise Unusable(f"{path}: each head needs run, sequence and hash")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"{path} holds no heads: {error}") from None
    at = document.get("asked_at_event")
    return hosts, at if isinstance(at, int) else None


def verify(
    database: str, blobs: str | None = None, snapshots: str | None = None, witness: str | None = None
) -> dict[str, Any]:
    """The verdict on a record, as `--json` prints it. Raises Unusable."""
    path, record = Path(database), _Record()
    hosts, asked_at = _read_heads(witness) if witness else ({}, None)
    _read_journal(path, record)
    record.check_ends()
    record.check_kept(Path(blobs or path.parent / "blobs"), Path(snapshots or path.parent / "snapshots"))
    newest = record.hear(hosts, asked_at)
    problems = {problem for problem, _, _ in record.findings}
    return {
        "verdict": [
            "not linked" if problems & UNLINKED else "linked",
            "not complete" if problems - BESIDE else "complete",
            "not witnessed" if newest is None else f"witnessed up to event {newest}",
        ],
        "events": len(record.hashes),
        "findings": [
            {"problem": problem, "event": event or None, "message": text} for problem, event, text in record.findings
        ],
        "open_runs": [name for name, run in record.runs.items() if run["opened"] and not run["closed"]],
    }


def main() -> int:
    """Verify what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    for name in ("--blobs", "--snapshots", "--witness"):
        parser.add_argument(name)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        result = verify(given.database, given.blobs, given.snapshots, given.witness)
    except Unusable as error:
        sys.stderr.write(ascii(str(error))[1:-1] + "\n")
        return 2
    lines = [f"{result['events']} events: {', '.join(result['verdict'])}"]
    lines += [f"run {run} goes on or was cut off: its end is not recorded" for run in result["open_runs"]]
    lines += [f"{one['problem']}: event {one['event'] or '-'} {one['message']}" for one in result["findings"]]
    if result["verdict"][2] == "not witnessed":
        lines.append("No host vouches for it: whoever can write the database could have computed all hashes anew.")
    # In ASCII: what a tampered record says must not reach a terminal as it is.
    shown = json.dumps(result, indent=2) if given.json else "\n".join(ascii(line)[1:-1] for line in lines)
    sys.stdout.write(shown + "\n")
    return 3 if result["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
