"""Does a configuration manager own an edited file? Then it will undo or overwrite a kept change."""

from __future__ import annotations

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 70
CHECK = Check("owner_managed", "advice")


def check(situation: Situation) -> CheckResult:
    """The header comments of the files that the change writes."""
    observed, manager = situation.observed, situation.manager
    if situation.writes_nothing:
        return CHECK.not_applicable("nothing is written")
    if observed is None or manager is None or not situation.edited_files:
        return CHECK.unknown("the edited files are not known")
    contents = {path: observed.content(path) for path in situation.edited_files}
    owner = manager.managed_by({path: data for path, data in contents.items() if data is not None})
    if owner:
        return CHECK.failed(
            f"{owner} manages this file", "make the kept change there too, or its next run takes it away"
        )
    unread = [path for path, data in contents.items() if data is None and _exists(situation, path)]
    if unread:
        return CHECK.unknown(f"not read: {', '.join(unread)}")
    return CHECK.passed("no configuration manager's header found", figure=counted(len(contents), "file"))


def _exists(situation: Situation, path: str) -> bool:
    facts = situation.observed.files.get(path) if situation.observed else None
    return facts is None or facts.exists is not False
