"""Make a file that was not there, and take away one that we made; neither ever hits somebody else's file."""

from __future__ import annotations

import os
from typing import Any, Dict

from . import facts, swap, system
from .failure import Failure, from_os_error
from .state import Run


def create(run: Run, event: str, resolved: str, data: bytes, args: Dict[str, Any]) -> str:
    """Create a file that must not exist yet; owner and mode as asked, else ours and 0644.

    Raises:
        Failure: `changed_by_other` when something lies there; nothing was changed then.
    """
    swap.check_writable_place(resolved)
    # Made beside the target, so that the folder's default ACL and label apply as to any file created there.
    place = swap.temporary_places(run, resolved)[-1]
    digest = system.sha256(data)
    run.record(
        f"{event}.intent", resolved=resolved, before="absent", sha256=digest, method="create", temporaries=[place]
    )
    wanted = swap.Metadata(
        int(args.get("uid", os.geteuid())), int(args.get("gid", os.getegid())), int(args.get("mode", 0o644)), {}
    )
    with swap.temporary_file(place, data, wanted):
        try:
            _move_without_replacing(place, resolved)
        except FileExistsError:
            raise Failure("changed_by_other", f"{resolved} exists now: somebody else created it") from None
        except OSError as error:
            raise from_os_error(error, f"creating {resolved}") from error
        system.sync_directory(os.path.dirname(resolved))
    return "create"


def remove(run: Run, event: str, resolved: str, accept: swap.Accept) -> str:
    """Remove a file that we created, if its bytes are still ours.

    Raises:
        Failure: `changed_by_other`; the file is in its place then.
    """
    with facts.opened(resolved) as before:
        swap.check_replaceable(before)
        if not accept(before.data):
            raise swap.changed_by_other(resolved, before.sha256)
    place = swap.temporary_places(run, resolved)[-1]
    run.record(f"{event}.intent", resolved=resolved, before=before.sha256, sha256="absent", method="remove",
               temporaries=[place])  # fmt: skip
    try:
        _move_without_replacing(resolved, place)
        with facts.opened(place) as out:
            unexpected = None if accept(out.data) else out.sha256
        if unexpected is None:
            os.unlink(place)
            system.sync_directory(os.path.dirname(resolved))
            return "remove"
        _move_without_replacing(place, resolved)
    except OSError as error:
        raise from_os_error(error, f"removing {resolved}") from error
    raise swap.changed_by_other(resolved, unexpected)


def _move_without_replacing(source: str, target: str) -> None:
    try:
        system.rename2(source, target, system.RENAME_NOREPLACE)
    except system.RenameUnsupported:
        os.link(source, target, follow_symlinks=False)
        os.unlink(source)
