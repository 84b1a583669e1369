"""One phase: the load runs on the instance's own host, the raw records are kept, and what was so meanwhile is noted."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.conditions import Fingerprint
from changectl.core.errors import HostCallError
from changectl.core.judgement import HardEvent
from changectl.core.measured import Measurement
from changectl.core.measurement import parse_records, summarise
from changectl.core.observed import Status
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import LoadPlan, fingerprint


@dataclass(frozen=True)
class Phase:
    """One measurement and its conditions."""

    letter: str  # A: the saved configuration; B: the new one
    measurement: Measurement
    conditions: Fingerprint
    events: tuple[HardEvent, ...]


def measure(attempt: Attempt, letter: str, load: LoadPlan, *, load_time: float | None, fresh_start: bool) -> Phase:
    """Measure the running service.

    Raises:
        HostCallError, ContactLost: the host could not be asked. A load generator that failed is no error: the phase
            says that it is invalid.
    """
    target, tools = attempt.target, attempt.tools
    before = target.status()
    facts = {"phase": letter, "host": target.name, "fresh_start": fresh_start, "levels": load.facts()["levels"]}
    with attempt.recorder.acting("measure", facts) as outcome:
        records, failure, generator = _run(attempt, letter, load)
        after = target.status(before.cursor)
        pages = target.pages(answer=False)
        capacity = target.engine.capacity(pages, after.log)
        measurement = summarise(
            parse_records(records.splitlines()),
            list(load.levels),
            facts={"load_time": load_time, "kv_capacity": capacity.kv_tokens},
            generator_failure=failure,
        )
        observed = target.inspect()
        tools.secrets.learn_observed(observed)
        version = target.engine.version(pages, after.log)
        conditions = fingerprint(attempt.contact, observed, version, load, tools.secrets)
        events = _hard_events(before, after, letter)
        outcome.update(
            phase=letter, host=target.name, fresh_start=fresh_start, summary=measurement.to_json(),
            blob=tools.records.put_blob(tools.secrets.redactor.known(records).encode()),
            conditions=conditions.to_json(), events=[event.text for event in events], generator=generator,
        )  # fmt: skip
    return Phase(letter, measurement, conditions, events)


def _run(attempt: Attempt, letter: str, load: LoadPlan) -> tuple[str, str | None, dict[str, Any]]:
    """The raw records (JSON lines), why the generator failed if it did, and what it says about itself."""
    tools = attempt.tools
    generator = attempt.stage(tools.generator())
    started = tools.clock.monotonic()

    def show(progress: Mapping[str, Any]) -> None:
        level = progress.get("level", "")
        tools.reporter.waiting(
            f"measuring {letter} at {level} ({progress.get('done', 0)} requests)",
            elapsed=tools.clock.monotonic() - started,
            expected=load.expected_seconds,
        )

    args = {**attempt.host_run, "generator": generator, "job": load.job(attempt.target, attempt.salt(letter))}
    try:
        answer = attempt.target.ask("measure", args, timeout=load.timeout, progress=show)
    except HostCallError as error:
        if error.reason != "generator_failed":
            raise
        return "", str(error), {}
    return zlib.decompress(base64.b64decode(answer["records"])).decode(), None, dict(answer.get("summary") or {})


def _hard_events(before: Status, after: Status, letter: str) -> tuple[HardEvent, ...]:
    """What needs no statistics: the process is another one, or memory ran out."""
    phase: Any = letter
    events = []
    if before.process is None or after.process is None:
        events.append(HardEvent("process_gone", "the service's process ended under load", phase))
    elif (before.process.pid, before.process.start_ticks) != (after.process.pid, after.process.start_ticks):
        events.append(HardEvent("process_restarted", "the service was restarted under load", phase))
    if any("oom-kill" in line or "Out of memory: Killed" in line for line in after.log):
        events.append(HardEvent("oom_kill", "the kernel ended a process for lack of memory", phase))
    return tuple(events)
