"""Saved configuration on the controller: encrypted, since a configuration file may hold a token."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path

from changectl.core.errors import ChangectlError
from changectl.store import files
from changectl.store.blobs import place
from changectl.store.keys import KeyFile

_HEADER = b"changectl snapshot 1\n"
_NONCE = 12


class SnapshotFolder:
    """`snapshots/aa/<sha256 of the plain bytes>`: header, nonce, AES-256-GCM over an origin line and the bytes."""

    def __init__(self, folder: Path, key_file: KeyFile) -> None:
        self._folder = folder
        self._key_file = key_file

    def put(self, run: str, host: str, data: bytes) -> str:
        """Keep the bytes encrypted, on disk when this returns; returns the SHA-256 of the plain bytes.

        Raises:
            ChangectlError: the key is missing, wrong or exposed; `record_failed` when the disk refuses.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = place(self._folder, digest)
        key = self._key_file.for_writing()
        if self._holds(digest):
            return digest
        origin = json.dumps({"run": run, "host": host}).encode("ascii")
        try:
            files.make_folder(path.parent)
            files.write_atomically(path, _seal(key, digest, origin + b"\n" + data))
        except OSError as error:
            message = f"cannot keep the saved configuration in {path.parent}: {error}"
            raise ChangectlError(message, reason="record_failed") from error
        return digest

    def get(self, digest: str) -> bytes:
        """The plain bytes, checked.

        Raises:
            ChangectlError: `snapshot_missing`, `snapshot_changed`, `key_missing`, `key_wrong`, `key_exposed`.
        """
        path = place(self._folder, digest)
        try:
            sealed = path.read_bytes()
        except OSError as error:
            message = f"the saved configuration {digest} cannot be read: {error}"
            raise ChangectlError(message, reason="snapshot_missing") from error
        _, _, data = _open(self._key_file.for_reading(), digest, sealed).partition(b"\n")
        if hashlib.sha256(data).hexdigest() != digest:
            raise _changed(digest)
        return data

    def _holds(self, digest: str) -> bool:
        try:
            self.get(digest)
        except ChangectlError:
            return False
        return True


def _seal(key: bytes, digest: str, plain: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE)
    return _HEADER + nonce + AESGCM(key).encrypt(nonce, plain, _HEADER + digest.encode())


def _open(key: bytes, digest: str, sealed: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    start = len(_HEADER)
    nonce, body = sealed[start : start + _NONCE], sealed[start + _NONCE :]
    if not sealed.startswith(_HEADER) or len(nonce) < _NONCE:
        raise _changed(digest)
    try:
        return AESGCM(key).decrypt(nonce, body, _HEADER + digest.encode())
    except InvalidTag as error:
        raise _changed(digest) from error


def _changed(digest: str) -> ChangectlError:
    message = f"the saved configuration {digest} was changed on disk, or was encrypted with another key"
    return ChangectlError(message, reason="snapshot_changed")
