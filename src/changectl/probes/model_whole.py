"""The model's files are whole: headers, lengths, shards; no git-lfs pointers. Of an unknown format: they are there."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.observed import ModelFile
from changectl.core.precheck import Check, CheckResult, Situation, format_bytes

ORDER = 30
CHECK = Check("model_whole", "required")


def check(situation: Situation) -> CheckResult:
    """What the host found when it looked at every file."""
    if not situation.model_declared:
        return CHECK.not_applicable("the service declares no model folder")
    model = situation.model
    if model is None:
        return CHECK.unknown("the model files were not looked at")
    if model.problems:
        found = "; ".join(f"{problem.path}: {problem.problem}" for problem in model.problems)
        return CHECK.failed(
            found, "the running service may still hold the whole model in memory: do not restart it now"
        )
    if not model.files:
        return CHECK.failed("there is no model file", "correct model.path in the service file")
    size = f", {format_bytes(model.total_bytes)}" if model.total_bytes is not None else ""
    count = len(model.files)
    return CHECK.passed(_told(model.files), figure=f"{count} file{'s' if count > 1 else ''}{size}")


def _told(files: Sequence[ModelFile]) -> str:
    """How far the files were looked into: a format that nobody here can read is only there."""
    known = sum(file.header is not None for file in files)
    if not known:
        return "not a known format: only its presence was checked"
    rest = len(files) - known
    others = f"; of {rest} other{'s' if rest > 1 else ''} only the presence was checked" if rest else ""
    return f"headers and lengths fit{others}"
