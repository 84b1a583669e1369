"""The instance is healthy before the change: a broken baseline can be judged by nothing."""

from __future__ import annotations

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 18
CHECK = Check("healthy_now", "required")
# A refused connection and a model that is being loaded look the same to an engine: neither answers yet.
_WORDS = {"loading": "does not answer", "not_serving": "gives no real answer", "wrong_model": "another model"}


def check(situation: Situation) -> CheckResult:
    """Up, not restarting, and a real answer from the right model."""
    if situation.status is None or situation.manager is None:
        return CHECK.unknown("the manager's status was not read")
    state = situation.manager.state(situation.status, situation.status_earlier)
    if state != "up":
        detail = _with_restarts(situation, f"the service is not up: {state}")
        return CHECK.failed(detail, "bring it up on its present configuration first", state)
    if situation.pages is None or situation.engine is None:
        return CHECK.unknown("the service's pages were not read")
    if situation.engine.protocols and "answer" not in situation.pages:
        return CHECK.unknown("no answer was asked for")
    found = situation.engine.readiness(situation.pages, situation.expected_model)
    if found.state != "ready":
        figure = _WORDS.get(found.state, found.state)
        detail = _with_restarts(situation, found.detail)
        return CHECK.failed(detail, "repair the service on its present configuration first", figure)
    return CHECK.passed(found.detail, figure=_restarts(situation))


def _with_restarts(situation: Situation, detail: str) -> str:
    # Between two crashes a service looks like one that is being loaded: only the count tells them apart.
    return f"{detail}; {_restarts(situation)}" if situation.status and situation.status.restarts else detail


def _restarts(situation: Situation) -> str:
    restarts = situation.status.restarts if situation.status else None
    return "" if restarts is None else f"{counted(restarts, 'restart')} so far"
