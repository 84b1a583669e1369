"""The model's files are whole: headers, lengths, shards; no git-lfs pointers."""

from __future__ import annotations

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
    return CHECK.passed("headers and lengths fit", figure=f"{len(model.files)} files{size}")
