"""The edited file may be changed at all: an immutable one is somebody's decision, better met before the baseline."""

from __future__ import annotations

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 22
CHECK = Check("file_writable", "required")


def check(situation: Situation) -> CheckResult:
    """Chattr's immutable or append-only mark; read-only file systems are met by disk_space."""
    observed = situation.observed
    if situation.writes_nothing:
        return CHECK.not_applicable("nothing is written")
    if observed is None or not situation.edited_files:
        return CHECK.unknown("the edited file was not looked at")
    known = {path: observed.files.get(path) for path in situation.edited_files}
    unseen = [path for path, facts in known.items() if facts is None or facts.exists is None]
    if unseen:
        return CHECK.unknown(f"not looked at: {', '.join(unseen)}")
    marked = [path for path, facts in known.items() if facts is not None and facts.immutable]
    if marked:
        return CHECK.failed(
            f"immutable or append-only: {', '.join(marked)}",
            "somebody wants it unchanged (`lsattr` shows the mark); ask, then `chattr -i`",
        )
    return CHECK.passed("nothing forbids the edit", figure=counted(len(known), "file"))
