"""The key file that saved bytes are encrypted with, and the fingerprint by which a wrong one is noticed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from sqlalchemy.dialects.sqlite import insert
from sqlmodel import col, select

from changectl.core.errors import ChangectlError, Refused
from changectl.store import files, tables
from changectl.store.database import Database

_FINGERPRINT = "key_fingerprint"
_BYTES = 32
_WITHOUT = "bring it back from a backup; the hosts have copies of their own, which are restored there by hand"


class KeyFile:
    """32 random bytes in base64, 0600, made at the first use and never replaced."""

    def __init__(self, path: Path, database: Database) -> None:
        self.path = path
        self._database = database

    def for_writing(self) -> bytes:
        """The key; made now when this record has never used one.

        Raises:
            ChangectlError: `key_missing`, `key_wrong`, `key_exposed`, `record_failed`.
        """
        if not self.path.exists() and self._known() is None:
            self._make()
        key = self.for_reading()
        if self._known() is None:
            self._remember(key)
            self._check(key)
        return key

    def for_reading(self) -> bytes:
        """The key that is there. Raises ChangectlError: `key_missing`, `key_wrong`, `key_exposed`."""
        try:
            text = self.path.read_bytes()
            exposed = self.path.stat().st_mode & 0o077
        except OSError as error:
            message = f"the key of the saved configurations cannot be read: {self.path}: {error.strerror}"
            raise Refused(f"{message}; {_WITHOUT}", reason="key_missing") from error
        if exposed:
            message = f"{self.path} can be read by others: chmod 600 it, and ask who may have seen it"
            raise Refused(message, reason="key_exposed")
        key = _decode(text)
        if len(key) != _BYTES:
            raise Refused(f"{self.path} holds no key; {_WITHOUT}", reason="key_wrong")
        self._check(key)
        return key

    def derive(self, purpose: str) -> bytes:
        """Other secret bytes for another purpose, the same ones as long as the key is the same."""
        return hmac.new(self.for_writing(), f"changectl {purpose}".encode(), hashlib.sha256).digest()

    def _make(self) -> None:
        text = base64.urlsafe_b64encode(secrets.token_bytes(_BYTES)) + b"\n"
        try:
            files.make_folder(self.path.parent)
            with suppress(FileExistsError):  # another process was faster: its key is the key
                files.write_atomically(self.path, text, replace=False)
        except OSError as error:
            raise ChangectlError(f"cannot make {self.path}: {error}", reason="record_failed") from error

    def _check(self, key: bytes) -> None:
        known = self._known()
        if known is not None and not hmac.compare_digest(known, _fingerprint(key)):
            message = f"{self.path} is not the key that this record's saved configurations were encrypted with"
            raise Refused(f"{message}; {_WITHOUT}", reason="key_wrong")

    def _known(self) -> str | None:
        with self._database.reading() as connection:
            return connection.execute(
                select(tables.Meta.value).where(col(tables.Meta.name) == _FINGERPRINT)
            ).scalar_one_or_none()

    def _remember(self, key: bytes) -> None:
        values = {"name": _FINGERPRINT, "value": _fingerprint(key)}
        with self._database.writing() as connection:
            connection.execute(insert(tables.Meta).values(values).on_conflict_do_nothing())


def _decode(text: bytes) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.strip())
    except (binascii.Error, ValueError):
        return b""


def _fingerprint(key: bytes) -> str:
    return hmac.new(key, b"changectl fingerprint", hashlib.sha256).hexdigest()[:32]
