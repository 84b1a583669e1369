"""Loaded GPU driver and installed library match: after an unattended upgrade only the running process still works."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 46
CHECK = Check("driver_library", "required")
_HINT = "a restart would fail now: reload the driver or reboot first"


def check(situation: Situation) -> CheckResult:
    """Versions as files tell them, and whether NVML answers at all."""
    nvml = situation.nvml
    if nvml is not None and nvml.none and "mismatch" in nvml.none.lower():
        return CHECK.failed(nvml.none, _HINT)
    gpu = situation.host.gpu if situation.host else None
    if gpu is None or gpu.present is None:
        return CHECK.unknown("not known whether there is a GPU driver")
    if not gpu.present:
        return CHECK.not_applicable("no GPU")
    figure = f"driver {gpu.driver or 'not told'}, library {gpu.library_version or 'not told'}"
    if gpu.driver and gpu.library_version:
        if gpu.driver != gpu.library_version:
            return CHECK.failed("the library is not the driver's", _HINT, figure)
        return CHECK.passed("driver and library have the same version", figure)
    if nvml is not None and nvml.gpus:
        return CHECK.passed("the library talks to the driver", figure)
    return CHECK.unknown("driver and library could not be compared", figure=figure)
