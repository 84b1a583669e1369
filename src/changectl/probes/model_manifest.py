"""The model's manifest is kept, and the files are those that the running process loaded: else two things change."""

from __future__ import annotations

from changectl.core.counting import counted
from changectl.core.observed import ModelFile
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 34
CHECK = Check("model_manifest", "required", reads_process=True)
SLACK = 0.5  # seconds: process start times are cut to a clock tick, file times are exact; the load comes after both


def check(situation: Situation) -> CheckResult:
    """Sizes and times are there; nothing is newer than the process; equal size and time means equal digest."""
    if not situation.model_declared:
        return CHECK.not_applicable("the service declares no model folder")
    model = situation.model
    if model is None or not model.files:
        return CHECK.unknown("there is no manifest of the model")
    if any(file.size is None or file.mtime_ns is None for file in model.files):
        return CHECK.unknown("the manifest lacks sizes or times")
    observed = situation.observed
    started = observed.process.started_at if observed and observed.process else None
    if started is None:
        return CHECK.unknown("not known when the running process loaded the model")
    newer = [file.path for file in model.files if file.mtime_ns is not None and file.mtime_ns / 1e9 > started + SLACK]
    if newer:
        return CHECK.failed(
            f"changed after the service loaded it: {', '.join(newer)}", "restart on the new files first, then change"
        )
    rotten = _rotten(model.files, situation.model_kept.files if situation.model_kept else [])
    if rotten:
        return CHECK.failed(
            f"same size and time, other content: {', '.join(rotten)}", "the disk or a tool changed them"
        )
    return CHECK.passed(*_told(situation))


def _rotten(now: list[ModelFile], kept: list[ModelFile]) -> list[str]:
    digests = {(file.path, file.size, file.mtime_ns): file.sha256 for file in kept if file.sha256}
    before = {file.path: digests.get((file.path, file.size, file.mtime_ns)) for file in now}
    return [file.path for file in now if file.sha256 and before[file.path] not in {None, file.sha256}]


def _told(situation: Situation) -> tuple[str, str]:
    files = situation.model.files if situation.model else []
    digests = sum(1 for file in files if file.sha256)
    figure = f"{counted(len(files), 'file')}, {digests} with digest"
    if situation.model_kept is None:
        return "first manifest of this model", figure
    kept = {(file.path, file.size, file.mtime_ns) for file in situation.model_kept.files}
    changed = len({(file.path, file.size, file.mtime_ns) for file in files} ^ kept)
    return ("as in the last run" if not changed else f"differs from the last run in {changed} entries"), figure
