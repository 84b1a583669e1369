"""Instances on one host: each is changed alone, so none may read what is written for another one."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.errors import Refused
from changectl.workflow.contact import Contact

SHARED_FILE = "shared_file"


def refuse_shared_files(contacts: Sequence[Contact]) -> None:
    """Look at the files that a step edits, links followed, and at those that the other instances of their hosts read.

    An instance that reads what was written for another one would run on it after its next start, by whatever cause,
    unjudged; and taking the file back for one would take it from the other.

    Raises:
        Refused: reason `shared_file`.
    """
    lines = [line for contact in contacts if not contact.changes_nothing for line in _readers(contact, contacts)]
    if lines:
        hint = (
            "A change is tried and kept on one instance after the other, so the file that it edits has to be of one "
            "instance alone: give each its own, for example a drop-in of its own (systemctl edit UNIT) or an "
            "environment file of its own, and name that file in the service's `config`"
        )
        raise Refused("\n".join([*dict.fromkeys(lines), hint]), reason=SHARED_FILE)


def _readers(contact: Contact, contacts: Sequence[Contact]) -> list[str]:
    target, edited = contact.target, contact.resolved_path
    names = [
        other.target.name
        for other in contacts
        if other is not contact and other.target.address.name == target.address.name and edited in other.resolved_paths
    ]
    host, both = target.address.name, ", ".join(sorted([target.name, *names]))
    return [f"{both} on host {host} share {edited}, which the change would edit"] if names else []
