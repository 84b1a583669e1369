"""Locks, evidence and saved bytes under the one name the workflow knows: `core.ports.Records`."""

from __future__ import annotations

from changectl.store.blobs import BlobFolder
from changectl.store.locks import Locks, ServiceLock
from changectl.store.snapshots import SnapshotFolder


class FiledRecords:
    """Fulfils `core.ports.Records`."""

    def __init__(self, locks: Locks, blobs: BlobFolder, snapshots: SnapshotFolder) -> None:
        self._locks, self._blobs, self._snapshots = locks, blobs, snapshots

    def lock(self, service: str, run: str, owner: str) -> ServiceLock:
        """Hold the service's one open change inside `with`; see `ServiceLock.taken_over`. Raises Locked there."""
        return ServiceLock(self._locks, service, run, owner)

    def put_blob(self, data: bytes) -> str:
        """Keep evidence; see `BlobFolder.put`."""
        return self._blobs.put(data)

    def get_blob(self, digest: str) -> bytes:
        """Evidence again, checked; see `BlobFolder.get`."""
        return self._blobs.get(digest)

    def put_snapshot(self, run: str, host: str, data: bytes) -> str:
        """Keep saved configuration encrypted; see `SnapshotFolder.put`."""
        return self._snapshots.put(run, host, data)

    def get_snapshot(self, digest: str) -> bytes:
        """Saved configuration again, checked; see `SnapshotFolder.get`."""
        return self._snapshots.get(digest)
