"""The one way a host call says that it did not do what was asked."""

from __future__ import annotations

import errno
from typing import Any, Dict

_WORDS = {
    errno.EROFS: ("read_only", "the file system is mounted read-only"),
    errno.ENOSPC: ("disk_full", "no space is left on the file system"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up"),
    errno.EACCES: ("not_permitted", "permission denied"),
    errno.EPERM: ("not_permitted", "operation not permitted"),
    errno.ENOENT: ("not_found", "no such file or folder"),
    errno.EIO: ("io_error", "the device reports an input/output error"),
}


class Failure(Exception):
    """A refusal or failure with a stable word for machines and a sentence for people.

    Args:
        reason: stable word, e.g. "changed_by_other".
        message: a sentence that names the thing and what is wrong with it.
        details: facts that a program may want (digests, process ids); never secrets.
    """

    def __init__(self, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.details: Dict[str, Any] = details

    def as_dict(self) -> Dict[str, Any]:
        """The failure as it travels: reason, message and the details beside them."""
        return {**self.details, "reason": self.reason, "message": self.message}


def from_os_error(error: OSError, doing: str) -> Failure:
    """Turn a system error into a Failure; `doing` says what was attempted, e.g. "writing /etc/x"."""
    reason, text = _WORDS.get(error.errno or 0, ("os_error", error.strerror or str(error)))
    return Failure(reason, f"{doing}: {text}", errno=errno.errorcode.get(error.errno or 0, "unknown"))
