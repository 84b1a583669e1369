"""The host is one whose files are its own: in a Kubernetes pod an edit is gone with the next start."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 2
CHECK = Check("pod_or_container", "required")


def check(situation: Situation) -> CheckResult:
    """What the host says about itself."""
    if situation.hello is None or situation.hello.kubernetes is None:
        return CHECK.unknown("not known whether this is a Kubernetes pod")
    if situation.hello.kubernetes:
        return CHECK.failed(
            "this is a Kubernetes pod: what is edited in it is gone with the next start",
            "change the Deployment or the chart that makes the pod",
        )
    if situation.hello.container:
        return CHECK.passed(f"a container ({situation.hello.container}) whose files last as long as it does")
    return CHECK.passed("a machine of its own")
