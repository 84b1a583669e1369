"""Replace a file by exchanging it with a prepared one; look at what came out, and swap back when it is unexpected."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional

from . import facts, inplace, system
from .failure import Failure, from_os_error
from .state import Run

Accept = Callable[[bytes], bool]
_SWAP_BACK_TRIES = 5
_BLOCK = 512  # bytes that stat counts as one block


@dataclass(frozen=True)
class Metadata:
    """What a file keeps beside its bytes."""

    uid: int
    gid: int
    mode: int
    xattrs: Dict[str, bytes]

    @classmethod
    def of(cls, file: facts.Opened) -> Metadata:
        """The metadata of an open file."""
        return cls(file.status.st_uid, file.status.st_gid, file.mode, file.xattrs)


def replace(run: Run, event: str, resolved: str, accept: Accept, data: bytes, keep: Optional[Metadata]) -> str:
    """Compare-and-swap a file's bytes; returns the method: "exchange", "rename" or "in_place".

    Args:
        run: where the intent is recorded before the act.
        event: word for the record, e.g. "write".
        resolved: the file itself, no link.
        accept: says whether the present bytes may be replaced.
        data: the new bytes.
        keep: owner, mode and extended attributes to give it; None: those it has.

    Raises:
        Failure: `changed_by_other`, `immutable`, `read_only`, `disk_full`, `not_permitted`, `cannot_keep_metadata`;
            nothing was changed then.
    """
    with facts.opened(resolved) as before:
        check_replaceable(before)
        if not accept(before.data):
            raise changed_by_other(resolved, before.sha256)
        wanted = keep or Metadata.of(before)
        in_place = before.status.st_nlink > 1 or facts.is_mount_point(resolved)
        places = [] if in_place else temporary_places(run, resolved)
        run.record(f"{event}.intent", resolved=resolved, before=before.sha256, sha256=system.sha256(data),
                   method="in_place" if in_place else "exchange", temporaries=places)  # fmt: skip
        if in_place:
            inplace.overwrite(resolved, before.data, data, (wanted.uid, wanted.gid, wanted.mode, wanted.xattrs))
            return "in_place"
        for place in places:
            with temporary_file(place, data, wanted), contextlib.suppress(_OtherMountError):
                return _exchange(place, before)
    raise Failure("os_error", f"{resolved}: no place on its file system from which it can be exchanged")


def replace_in_place(run: Run, event: str, resolved: str, accept: Accept, data: bytes, keep: Metadata) -> str:
    """Like `replace`, over the file's own blocks: for a disk on which there is no room for a second file.

    Raises:
        Failure: as `replace`; `disk_full` where the file's blocks do not hold the bytes. Nothing was changed then.
    """
    with facts.opened(resolved) as before:
        if not accept(before.data):
            raise changed_by_other(resolved, before.sha256)
        if len(data) > before.status.st_blocks * _BLOCK:
            raise Failure("disk_full", f"{resolved}: no space is left on the file system, and its own is too small")
        run.record(f"{event}.intent", resolved=resolved, before=before.sha256, sha256=system.sha256(data),
                   method="in_place", temporaries=[])  # fmt: skip
        inplace.overwrite(resolved, before.data, data, (keep.uid, keep.gid, keep.mode, keep.xattrs))
        return "in_place"


class _OtherMountError(Exception):
    """The prepared file lies on another mount of the same file system: try beside the target."""


def check_replaceable(file: facts.Opened) -> None:
    """Refuse early what the kernel would refuse in the middle.

    Raises:
        Failure: `immutable`, `read_only`.
    """
    if system.is_immutable(file.descriptor):
        raise Failure("immutable", f"{file.path} is immutable or append-only (chattr): its owner wants it unchanged")
    check_writable_place(file.path)


def check_writable_place(path: str) -> None:
    """Raises Failure `read_only` when the file system that holds `path` is mounted read-only."""
    if os.statvfs(os.path.dirname(path)).f_flag & os.ST_RDONLY:
        raise Failure("read_only", f"{path}: the file system is mounted read-only")


def changed_by_other(path: str, found: str) -> Failure:
    """The refusal when the file is not what the caller thinks it is."""
    return Failure("changed_by_other", f"{path} is not what it was: somebody else changed it", found=found)


def temporary_places(run: Run, resolved: str) -> List[str]:
    """Where the prepared file may lie: the run's folder if on the same device, else beside the target.

    Beside the target is the second choice because some services act on any new file in their folder; the name is hidden
    and has no ending that such folders look for.
    """
    token = f"{os.getpid()}-{os.urandom(6).hex()}"
    folder = os.path.dirname(resolved)
    beside = os.path.join(folder, f".{os.path.basename(resolved)[:120]}.changectl-{token}")
    own = run.make("swap")
    if os.stat(own).st_dev == os.stat(folder).st_dev:
        return [os.path.join(own, token), beside]
    return [beside]


@contextlib.contextmanager
def temporary_file(place: str, data: bytes, wanted: Metadata) -> Iterator[None]:
    """A complete, durable file with the wanted metadata; whatever lies at the place is removed at the end."""
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise from_os_error(error, f"preparing {place}") from error
    try:
        try:
            system.write_all(descriptor, data)
            give_metadata(descriptor, place, wanted)
            os.fsync(descriptor)
        except OSError as error:
            raise from_os_error(error, f"preparing {place}") from error
        finally:
            os.close(descriptor)
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)


def give_metadata(descriptor: int, path: str, wanted: Metadata) -> None:
    """Set owner, extended attributes and mode, and look whether they are as wanted.

    Raises:
        Failure: `cannot_keep_metadata`, naming what cannot be kept.
    """
    status = os.fstat(descriptor)
    try:
        if (status.st_uid, status.st_gid) != (wanted.uid, wanted.gid):
            os.fchown(descriptor, wanted.uid, wanted.gid)
        system.set_xattrs(descriptor, wanted.xattrs)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != wanted.mode:
            os.fchmod(descriptor, wanted.mode)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP):
            raise
        message = f"{path}: this user may not give the file its owner, mode or extended attributes ({error.strerror})"
        raise Failure("cannot_keep_metadata", message) from error
    status = os.fstat(descriptor)
    got = Metadata(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), system.get_xattrs(descriptor))
    if got != wanted:
        raise Failure("cannot_keep_metadata", f"{path}: owner, mode or extended attributes did not come out as asked")


def _exchange(place: str, before: facts.Opened) -> str:
    target = before.path
    ours = os.lstat(place).st_ino
    try:
        system.rename2(place, target, system.RENAME_EXCHANGE)
    except system.RenameUnsupported:
        return _guarded_rename(place, before)
    except FileNotFoundError:
        raise changed_by_other(target, "absent") from None
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise _OtherMountError from error
        raise from_os_error(error, f"exchanging {target}") from error
    found = _came_out_as_read(place, before)
    if found is not None:
        _swap_back(place, target, ours)
        raise changed_by_other(target, found)
    system.sync_directory(os.path.dirname(target))
    return "exchange"


def _came_out_as_read(place: str, before: facts.Opened) -> Optional[str]:
    """None when the file that came out is the one that was read; else what it is."""
    try:
        with facts.opened(place) as out:
            same = out.sha256 == before.sha256 and Metadata.of(out) == Metadata.of(before)
            return None if same else out.sha256
    except Failure as failure:
        return failure.reason


def _swap_back(place: str, target: str, ours: int) -> None:
    """Give the target back what came out; a still newer file that comes out in turn wins."""
    for _ in range(_SWAP_BACK_TRIES):
        try:
            system.rename2(place, target, system.RENAME_EXCHANGE)
        except FileNotFoundError:
            # The target was removed meanwhile; what lay there before our swap is not ours to throw away.
            os.rename(place, f"{place}.displaced")
            break
        if os.lstat(place).st_ino == ours:
            break
    system.sync_directory(os.path.dirname(target))


def _guarded_rename(place: str, before: facts.Opened) -> str:
    """For file systems without exchange: look again, then rename; a writer between the two would be lost."""
    found = _came_out_as_read(before.path, before)
    if found is not None:
        raise changed_by_other(before.path, found)
    try:
        os.rename(place, before.path)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise _OtherMountError from error
        raise from_os_error(error, f"replacing {before.path}") from error
    system.sync_directory(os.path.dirname(before.path))
    return "rename"
