"""A copy of the database beside it, made before a migration touches it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from changectl.core.errors import ChangectlError
from changectl.store import files


def make_backup(path: Path, version: int) -> Path:
    """Copy the database to `changectl.db.version-1.20261130T081502.123456Z`, 0600; call it while nobody may write.

    It is whole, on disk, and a database of its own: the older program can be given it.

    Raises:
        ChangectlError: it cannot be made; then nothing may be migrated either.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    place = path.with_name(f"{path.name}.version-{version}.{moment}")
    temporary = place.with_name(f".{place.name}")
    try:
        files.create_private(temporary)
        # A second connection sees what is committed. (Connection.backup would try for ever on a full disk.)
        source = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None)
        try:
            source.execute("VACUUM INTO ?", (str(temporary),))
        finally:
            source.close()
        files.sync(temporary)
        temporary.rename(place)
        files.sync_folder(place.parent)
    except (OSError, sqlite3.Error) as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot make a backup of {path} before it is migrated: {error}; nothing was changed"
        raise ChangectlError(message, reason="record_failed") from error
    return place
