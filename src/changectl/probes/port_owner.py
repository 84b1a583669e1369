"""The endpoint's port is held by the manager's own processes: else we would change one engine and measure another."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 16
CHECK = Check("port_owner", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """Who listens on the port, against the process tree of the manager."""
    observed = situation.observed
    if observed is None or situation.manager is None or situation.endpoint is None:
        return CHECK.unknown("not known who holds the port")
    owns = situation.manager.owns_port(observed, situation.endpoint)
    process = observed.process
    if owns is None:
        return CHECK.unknown(f"not known who holds the port of {situation.endpoint}")
    owner = f"process {observed.port_owner.pid}" if observed.port_owner else "nobody"
    if owns:
        return CHECK.passed(f"{situation.endpoint} is served by the managed process", figure=owner)
    return CHECK.failed(
        f"the port of {situation.endpoint} is held by {owner}, not by the managed process {process and process.pid}",
        "correct the endpoint or the manager's unit in the service file",
        figure=owner,
    )
