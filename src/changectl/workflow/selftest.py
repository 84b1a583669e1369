"""`changectl selftest`: put a known delay into the client's way, and have it judged as a trial judges a change.

Nothing is changed on any host: no start, no write, no balancer, no lease. Load goes to the running service as it is,
beside its users, so that it has to be allowed as any load beside users has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from changectl.core.declared import levels
from changectl.core.declared.placing import Placed
from changectl.core.declared.service import Service
from changectl.core.digest import sha256
from changectl.core.errors import Locked, Refused
from changectl.core.history.events import SELFTEST
from changectl.core.judging.baseline import unusable
from changectl.core.judging.conditions import FILES, Fingerprint
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.self_test import said
from changectl.core.observed import HostFacts
from changectl.core.ports import HostAddress
from changectl.core.precheck import refuses
from changectl.core.replaying.basis import Basis
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.seeing import KINDS, Kind, Sight, blind_from_the_start, delay_for, sight
from changectl.core.units import format_duration
from changectl.probes import live_load as live_probe
from changectl.workflow.apply import refuse_unfinished
from changectl.workflow.calling import calling
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.contact import open_target
from changectl.workflow.events import Look, hard_events
from changectl.workflow.live_load import live_load
from changectl.workflow.measure import late_words
from changectl.workflow.recorder import Recorder
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.waiting import service_lock


@dataclass(frozen=True)
class SelfTestOrder:
    """A service whose measuring is to be proven: validated, with everything that it names at hand.

    Attributes:
        service: the service.
        placed: its instances, on their hosts.
        workload: what is sent.
        protocol: how.
        caller: the host that sends it; None: each instance's own.
        seconds: how long each phase lasts; None: as the service says.
    """

    service: Service
    placed: Sequence[Placed]
    workload: Sequence[Mapping[str, Any]]
    protocol: str
    caller: HostAddress | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Proven:
    """What came of one instance."""

    instance: str
    sight: Sight


@dataclass(frozen=True)
class SelfTestEnd:
    """What came of all instances."""

    run: str
    instances: tuple[Proven, ...]

    @property
    def sees(self) -> bool:
        """Whether measuring was proven on every one."""
        return bool(self.instances) and all(one.sight.sees for one in self.instances)


def self_test(order: SelfTestOrder, tools: Tools) -> SelfTestEnd:
    """Prove it on one instance after the other.

    Raises:
        Locked: a change of the service, or of something on an instance's host, is open.
        Refused: no load may be sent, or another run has to be settled first; nothing was sent.
        ChangectlError, Interrupted: it could not be carried out; nothing of it stays anywhere.
    """
    service = order.service.service
    load = _load(order)
    run = tools.new_run(service)
    recorder = Recorder(tools.journal, tools.secrets, run)
    with tools.interrupts.listening(), service_lock(service, run, tools):
        refuse_unfinished(service, tools)
        return SelfTestEnd(run, tuple(_instance(one, load, recorder, tools) for one in order.placed))


def _load(order: SelfTestOrder) -> LoadPlan:
    """One level, the same for all phases: `low`, or where its users may feel it the first that there is."""
    service, given = order.service, order.service.conditions
    own = dict(given.levels)
    chosen = levels.LOW if levels.LOW in own else next(iter(own), "")
    if chosen != levels.LOW and not service.limits.load_on_live:
        text = f"{service.service} may be serving, and none of its levels is called `{levels.LOW}`"
        raise Refused(f"{text}: add one, or write limits: {{load_on_live: true}}", reason="load_not_allowed")
    # Of answers nothing is judged here, and a quality prompt is answered from a cache the second time.
    workload = [{name: value for name, value in entry.items() if name != "quality"} for entry in order.workload]
    seconds = order.seconds or given.seconds or (None if given.requests else levels.DEFAULT_SECONDS)
    return LoadPlan(
        protocol=order.protocol,
        workload=workload,
        workload_digest=sha256(json.dumps(workload, sort_keys=True).encode()),
        levels={chosen: own[chosen]},
        seconds=seconds,
        requests=given.requests if order.seconds is None else None,
        seed=given.seed or 0,
        caller=order.caller,
    )


def _instance(placed: Placed, load: LoadPlan, recorder: Recorder, tools: Tools) -> Proven:
    tools.interrupts.check()
    with closing(open_target(placed, tools)) as target:
        _require_free(target, recorder.run)
        _require_allowed(target, load, tools)
        tools.reporter.note(f"{target.name}: {_price(load)}")
        body = {"service": target.service.service, "host": target.name, "levels": load.facts()["levels"],
                "caller": load.caller_name(target), "actor": tools.actor}  # fmt: skip
        with recorder.acting(SELFTEST, body) as outcome:
            outcome.update(service=target.service.service, host=target.name)
            found = _Phases(target, load, recorder, tools).sight()
            outcome.update(found.to_json())
    return Proven(target.name, found)


def _require_free(target: Target, run: str) -> None:
    """A change of another service on the same host would be measured with it, and would be spoilt itself."""
    held = target.ask("standing", {"run": run}).get("lease")
    if isinstance(held, Mapping) and held.get("live", True):
        raise Locked(f"{target.name}: run {held.get('run')} of {held.get('owner')} is at work there", reason="held")


def _require_allowed(target: Target, load: LoadPlan, tools: Tools) -> None:
    """It stays in service whatever its traffic control could do, so that its users are asked for first."""
    result = live_probe.of(live_load(target, load, tools, stays=True))
    if refuses([result]):
        redactor = tools.secrets.redactor
        text = f"{target.name}: {result.detail} ({result.figure}). What to do: {result.hint}"
        raise Refused(redactor.text(text), reason=result.reason or "live_load")


def _price(load: LoadPlan) -> str:
    """Said beforehand: minutes and requests."""
    (name, size), *_ = load.sizes.items()
    number = None if size.count is None else len(KINDS) * size.count
    requests = "as many requests as it answers in that time" if number is None else f"{number} requests"
    takes = "" if load.expected_seconds is None else f", about {format_duration(len(KINDS) * load.expected_seconds, 3)}"
    what = f"{len(KINDS)} phases at {name} ({size.load}){takes} and {requests}, beside its users"
    return f"{what}. Nothing is changed, stopped or started; two phases take a way that is longer by a known time"


class _Phases:
    """The phases of one instance, one after the other."""

    def __init__(self, target: Target, load: LoadPlan, recorder: Recorder, tools: Tools) -> None:
        self._target, self._load, self._recorder, self._tools = target, load, recorder, tools

    def sight(self) -> Sight:
        """All of them, or the first alone where that says nothing."""
        level = next(iter(self._load.levels))
        phases: list[tuple[Kind, TrialPhase]] = []
        delay = 0.0
        for number, kind in enumerate(KINDS, 1):
            self._tools.interrupts.check()
            phase = self._phase(number, kind, delay if kind == "delayed" else 0.0)
            phases.append((kind, phase))
            if number == 1:
                if reasons := unusable(phase.measurement, hard_events=phase.events):
                    return blind_from_the_start(reasons)
                measured = phase.measurement.level(level)
                delay = 0.0 if measured is None else delay_for(measured)
        return sight(phases, delay, level)

    def _phase(self, number: int, kind: Kind, delay: float) -> TrialPhase:
        what = {"host": self._target.name, "number": number, "kind": kind, "delay": delay}
        with self._recorder.acting(f"{SELFTEST}.phase", what) as outcome:
            outcome.update(what)
            return self._sent(number, delay, outcome)

    def _sent(self, number: int, delay: float, outcome: dict[str, Any]) -> TrialPhase:
        target, load, tools = self._target, self._load, self._tools
        run = self._recorder.run
        before = Look(target.status(), HostFacts.read(target.host_answer()))
        begun = tools.clock.monotonic()

        def show(progress: Mapping[str, Any]) -> None:
            what = f"{target.name}: phase {number} of {len(KINDS)} ({progress.get('done', 0)} requests)"
            tools.reporter.waiting(what, elapsed=tools.clock.monotonic() - begun, expected=load.expected_seconds)

        with calling(target, load.caller, tools) as caller:
            for again in (False, True):
                salt = sha256(f"{run}/{target.name}/{number}/{again}".encode())[:16]
                # All phases take the same way, so that nothing but the delay is different.
                job = {**load.job(target, salt), "relay": {"delay": delay}}
                sent = caller.send(tools.generator(), job, run, load.timeout, show)
                records = parse_records(sent.records)
                late = late_words(sent, records, load)
                if not late or again:
                    break
                outcome["late"] = late
                tools.reporter.note(f"{target.name}: the load generator did not keep up ({late}); sending it once more")
                tools.interrupts.check()
            who = caller.conditions(sent)
        after = Look(target.status(before.status.cursor), HostFacts.read(target.host_answer(since=before.status.now)))
        tested = said(sent.summary) if sent.failure is None else None
        basis = Basis(load.sizes, failure=sent.failure, self_test=tested)
        phase = TrialPhase(
            number=number,
            letter="A",
            measurement=basis.measurement(records),
            conditions=_conditions(target, load, after, who),
            events=hard_events(before, after, "A"),
        )
        raw = tools.secrets.redactor.known(sent.records)
        outcome.update(
            blob=tools.records.put_blob(raw.encode()), summary=phase.measurement.to_json(),
            basis=basis.to_json(), conditions=phase.conditions.to_json(), generator=dict(sent.summary),
            events=[event.text for event in phase.events],
        )  # fmt: skip
        return phase


def _conditions(target: Target, load: LoadPlan, look: Look, who: Mapping[str, Any]) -> Fingerprint:
    """The same process all the time has the same settings and model; what lies beside it might be another."""
    files = target.inspect().files
    return Fingerprint({
        "process": None if look.status.identity is None else list(look.status.identity),
        FILES: {path: "not there" if one.exists is False else one.sha256 for path, one in files.items()},
        "boot": target.hello().boot_id,
        "endpoint": load.endpoint(target),
        **who,
        **load.facts(),
    })  # fmt: skip
