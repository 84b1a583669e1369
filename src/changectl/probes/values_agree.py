"""File, running process and engine agree before the change: else our restart would also activate an earlier edit."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.precheck import Check, CheckResult, Seen, Situation, ThreeValues

ORDER = 10
CHECK = Check("values_agree", "required", reads_process=True)
_HINT = "restart the service (or undo the edit) first, so that this change is the only one"


def check(situation: Situation) -> CheckResult:
    """Every setting found in the carriers is compared in the places where it can be read."""
    if not situation.values:
        return CHECK.unknown("the values in file, process and engine were not read")
    wrong = [text for values in situation.values if (text := _disagreement(situation, values))]
    if wrong:
        return CHECK.failed("; ".join(wrong), _HINT, figure=f"{len(wrong)} of {len(situation.values)} settings differ")
    unread = [values.name for values in situation.values if not values.file.known]
    unseen = [values.name for values in situation.values if not (values.process.known or values.engine.known)]
    if unread:
        return CHECK.unknown(f"not known what the file says about {', '.join(unread)}")
    if unseen and not _started_after_last_edit(situation):
        return CHECK.unknown(f"not known whether the running service took {', '.join(unseen)} from the file", _HINT)
    compared = len(situation.values)
    return CHECK.passed(_told(situation.values), figure=f"{compared} setting{'s' if compared > 1 else ''} compared")


def _told(rows: Sequence[ThreeValues]) -> str:
    """Which places agree: never more than could be read; and of how many settings those tell that do not tell all."""
    places = {
        "process": sum(values.process.known for values in rows),
        "engine": sum(values.engine.known for values in rows),
    }
    telling = [name for name, count in places.items() if count]
    if not telling:
        return "neither process nor engine tell; the service was started after the last edit of the file"
    agree = " and ".join(", ".join(["file", *telling]).rsplit(", ", 1))
    gaps = [
        f"the {name} does not tell" if not count else f"the {name} tells {count} of {len(rows)}"
        for name, count in places.items()
        if count < len(rows)
    ]
    return "; ".join([f"{agree} agree", *gaps])


def _disagreement(situation: Situation, values: ThreeValues) -> str | None:
    file, process, engine = values.file, values.process, values.engine
    if file.known and process.known and not _same(situation, values, file, process):
        if values.setting is None and values.name != situation.name:
            # A variable that the plan does not speak of may be secret under any name: its values are not told.
            return f"{values.name}: the file and the process differ"
        return f"{values.name}: file {file}, process {process}"
    # Where the file and the process leave a setting out, the engine reports its default: no disagreement.
    given = next((seen for seen in (file, process) if seen.known and seen.value is not None), None)
    if given is None or given.value is None or not engine.known or engine.value is None:
        return None
    if values.setting is None or situation.engine is None:
        return None if given.value == engine.value else f"{values.name}: given {given}, engine {engine}"
    if situation.engine.took_effect(values.setting, given.value, engine.value):
        return None
    return f"{values.name}: given {given}, engine {engine}"


def _same(situation: Situation, values: ThreeValues, one: Seen, other: Seen) -> bool:
    if values.setting is None or situation.engine is None:
        return one.value == other.value
    return situation.engine.same(values.setting, one.value, other.value)


def _started_after_last_edit(situation: Situation) -> bool:
    """A file that is older than the process was read by it as it is now."""
    observed = situation.observed
    started = observed.process.started_at if observed and observed.process else None
    if observed is None or started is None or not situation.edited_files:
        return False
    times = [observed.files[path].mtime_ns if path in observed.files else None for path in situation.edited_files]
    return all(time is not None and time / 1e9 < started for time in times)
