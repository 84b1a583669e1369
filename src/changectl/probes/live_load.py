"""Is the load that a trial adds to an instance with users at most a tenth of what they send?"""

from __future__ import annotations

from dataclasses import replace

from changectl.core.declared.live_load import LiveLoad, added
from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.units import LevelLoad

ORDER = 21
CHECK = Check("live_load", "required", reads_process=True)
_WAYS = (
    "wait for other traffic, let it be taken out of service (`traffic`), write `effort: {observe: 10m}` into the plan"
)
_ALLOW = "or `limits: {load_on_live: true}` into the service file if its users may feel it"


def check(situation: Situation) -> CheckResult:
    """A closed level is held against the requests under way, an open one against those that come a second."""
    if situation.live is None:
        return CHECK.unknown("what its users send was not looked at")
    return of(situation.live)


def of(live: LiveLoad) -> CheckResult:
    """What follows from what users were seen to send."""
    if live.spared:
        return CHECK.not_applicable(live.spared)
    if live.idle:
        return CHECK.passed("it serves nobody: no request came while its page was watched", live.told)
    untold = [name for name, load in live.levels.items() if live.allowed(load) is None]
    if untold:
        why = f"the engine does not tell what `{', '.join(untold)}` has to be held against"
        return CHECK.unknown(f"it may serve users, and {why}", f"{_WAYS}, {_ALLOW}", live.told)
    beyond = [_beyond(live, name, load) for name, load in live.levels.items() if added(load) > _most(live, load)]
    if beyond:
        return replace(CHECK.failed("; ".join(beyond), f"{_WAYS}, {_ALLOW}", live.told), reason="live_load")
    return CHECK.passed("; ".join(_within(live, name, load) for name, load in live.levels.items()), live.told)


def _most(live: LiveLoad, load: LevelLoad) -> float:
    return live.allowed(load) or 0.0


def _within(live: LiveLoad, name: str, load: LevelLoad) -> str:
    return f"`{name}` adds {load}, and {_limit(live, load)} may be added"


def _beyond(live: LiveLoad, name: str, load: LevelLoad) -> str:
    return f"`{name}` would add {load} to what its users send, and a tenth of that, {_limit(live, load)}, is the most"


def _limit(live: LiveLoad, load: LevelLoad) -> str:
    most = f"{_most(live, load):.2g}"
    return f"{most} rps" if load.open else f"{most} stream{'s' if most != '1' else ''}"
