"""A trial without any load of our own: the saved configuration under live traffic, the change, live traffic again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from changectl.core.engine import Pages
from changectl.core.judging.baseline import BASELINE_INVALID
from changectl.core.judging.conditions import Fingerprint, single_difference, unknown
from changectl.core.judging.observation import Observation, judge_observed, too_little
from changectl.core.observed import HostFacts
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.core.telemetry.engine_window import window
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import fingerprint
from changectl.workflow.events import Look, hard_events, observations
from changectl.workflow.measure import present_at
from changectl.workflow.not_kept import NotKept
from changectl.workflow.target import Target
from changectl.workflow.traffic import back_in_service, out_of_service
from changectl.workflow.trial import Acceptance, Trial, declared, prove_effect, recorded, run_checks, started

LOOK = 2.0  # seconds between two looks at the process


def observe_change(attempt: Attempt, acceptance: Acceptance, seconds: float) -> Trial:
    """Change one instance and judge it by what its users sent before and after.

    With traffic control it is out of service for its restart alone.

    Args:
        attempt: the instance.
        acceptance: the plan and its step.
        seconds: how long each of the two configurations is observed.

    Raises:
        NotKept: nothing could be told from the saved configuration (then nothing was written), or the change did not
            start, did not arrive, moved something else, or failed the operator's checks.
        Refused: it could not be taken out of service; nothing was written.
        ChangectlError: it could not be carried out.
    """
    before, as_saved = _observe(attempt, "A", seconds, attempt.contact.status.whole_log)
    if reasons := [*(event.text for event in before.events), *map(str, too_little(before, "before the change"))]:
        text = f"{attempt.target.name}: nothing could be told from live traffic, so the change was not tried there: "
        hint = "observe longer (`effort: {observe: 1h}`), or let load be sent (`effort: quick`)"
        raise NotKept(BASELINE_INVALID, f"{text}{'; '.join(reasons)}. What to do: {hint}")
    out_of_service(attempt)
    attempt.change()
    ready = started(attempt, "the new configuration")
    prove_effect(attempt, ready)
    back_in_service(attempt)  # the dead-man stays armed: nothing is judged yet
    after, as_changed = _observe(attempt, "B", seconds, ready.log)
    run_checks(attempt, acceptance)
    service, step = attempt.target.service, acceptance.step
    judgement = judge_observed(
        before,
        after,
        service_class=service.class_,
        guards=acceptance.plan.guards(service.slo, step),
        expect=step.expect.gains,
        undeclared=single_difference(as_saved, as_changed, declared(attempt)),
        unread=unknown(as_saved, as_changed),
        changes_answers=attempt.contact.wanted.changes_answers,
    )
    return recorded(attempt, judgement, ready.status.identity)


def _observe(
    attempt: Attempt, letter: Literal["A", "B"], seconds: float, log: Sequence[str]
) -> tuple[Observation, Fingerprint]:
    """What happens to the running service in that time, and what it is; it ends at once where the process does.

    `log` is what it said at its start: some engines tell there alone what they can hold.
    """
    target, clock = attempt.target, attempt.tools.clock
    body = {"phase": letter, "host": target.name, "seconds": seconds, "fresh_start": letter == "B"}
    with attempt.recorder.acting("observe", body) as outcome:
        first = Look(target.status(), HostFacts.read(target.host_answer()))
        page, begun = _page(target, target.pages(answer=False)), clock.monotonic()
        while (elapsed := clock.monotonic() - begun) < seconds:
            attempt.tools.interrupts.check()
            if target.status(first.status.cursor).identity != first.status.identity:
                break
            what = "the change" if letter == "B" else "the saved configuration"
            text = f"{target.name}: {what} under live traffic"
            attempt.tools.reporter.waiting(f"observing {text}", elapsed=elapsed, expected=seconds)
            clock.sleep(min(LOOK, seconds - elapsed))
        status, host = target.status(first.status.cursor), target.host_answer(since=first.status.now)
        last, pages = Look(status, HostFacts.read(host)), target.pages(answer=False)
        took = clock.monotonic() - begun
        seen = Observation(
            took,
            window(page, _page(target, pages)),
            {"kv_capacity": target.engine.capacity(pages, [*log, *status.log]).kv_tokens},
            hard_events(first, last, letter, ""),
            observations(first, last, letter),
        )
        version = target.engine.version(pages, [*log, *status.log])
        conditions = fingerprint(attempt.contact, present_at(attempt, host, version, {}), None, attempt.tools.secrets)
        outcome.update(
            **body, observed_seconds=round(took, 1), summary=seen.measurement.to_json(), engine=seen.window.to_json(),
            events=[event.text for event in seen.events], conditions=conditions.to_json(),
        )  # fmt: skip
    ended = seen.ended
    many = "its requests could not be counted"
    if ended is not None:
        many = f"{ended.n:.0f} requests, {ended.failed:.0f} failed"
    attempt.tools.reporter.note(f"{target.name}: {format_duration(round(took))} of live traffic: {many}")
    return seen, conditions


def _page(target: Target, pages: Pages) -> EnginePage:
    return read_page(target.engine.metric_table, pages.get("metrics"), target.service.model.name)
