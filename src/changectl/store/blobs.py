"""Bulky evidence: compressed files named by the SHA-256 of their plain bytes."""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import Path

from changectl.core.errors import ChangectlError
from changectl.core.redaction.redactor import Tripwire
from changectl.store import files

_DIGEST = re.compile(r"[0-9a-f]{64}")


def place(folder: Path, digest: str) -> Path:
    """Where the bytes with this digest lie. Raises ChangectlError for what is no digest (it may come from outside)."""
    if not _DIGEST.fullmatch(digest):
        raise ChangectlError(f"{digest!r} is not a SHA-256 digest", reason="bad_digest")
    return folder / digest[:2] / digest


class BlobFolder:
    """`blobs/aa/<sha256>`, each 0600."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tripwire = Tripwire(())

    def guard(self, tripwire: Tripwire) -> None:
        """From now on refuse evidence in which the tripwire finds a secret."""
        self._tripwire = tripwire

    def put(self, data: bytes) -> str:
        """Keep the bytes; the same bytes are kept once, and a damaged copy is replaced. Returns their SHA-256.

        Raises:
            ChangectlError: `secret_in_record`, or `record_failed` when the disk refuses.
        """
        self._tripwire.check("evidence", data)
        digest = hashlib.sha256(data).hexdigest()
        path = place(self._folder, digest)
        if self._holds(digest):
            return digest
        try:
            files.make_folder(path.parent)
            files.write_atomically(path, zlib.compress(data, 6))
        except OSError as error:
            raise ChangectlError(f"cannot keep evidence in {path.parent}: {error}", reason="record_failed") from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes again, checked. Raises ChangectlError: `blob_missing`, `blob_changed`, `bad_digest`."""
        path = place(self._folder, digest)
        try:
            packed = path.read_bytes()
        except OSError as error:
            raise ChangectlError(f"evidence {digest} cannot be read: {error}", reason="blob_missing") from error
        try:
            data = zlib.decompress(packed)
        except zlib.error as error:
            raise ChangectlError(f"evidence {digest} was changed on disk: {error}", reason="blob_changed") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise ChangectlError(f"evidence {digest} was changed on disk", reason="blob_changed")
        return data

    def _holds(self, digest: str) -> bool:
        try:
            self.get(digest)
        except ChangectlError:
            return False
        return True
