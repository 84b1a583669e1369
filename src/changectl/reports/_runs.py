"""A run as a JSON document, shared by the reports. The schema is in docs/reference/json.md; names are never reused."""

from __future__ import annotations

from typing import Any

from changectl.core.history.reading import RunSummary, StepSummary

FORMAT = 1


def run_json(run: RunSummary) -> dict[str, Any]:
    """A run with its steps."""
    return {
        "run": run.run,
        "service": run.service,
        "outcome": run.outcome,
        "exit_code": run.exit_code,
        "end_reason": run.end_reason or None,
        "reason": run.reason,
        "incident": run.incident or None,
        "ticket": run.ticket,
        "actor": run.actor,
        "hosts": list(run.hosts),
        "plan": run.plan,
        "plan_digest": run.plan_digest,
        "tool_version": run.tool_version,
        "opened_at": run.opened_at,
        "closed_at": run.closed_at,
        "outage_seconds": run.outage_seconds,
        "extends": run.extends,
        "extended_by": run.extended_by,
        "reverts": run.reverts,
        "reverted_by": run.reverted_by,
        "found_back_by": run.found_back_by,
        "doubted_by": run.doubted_by,
        "settled_by": run.settled_by,
        "steps": [step_json(step) for step in run.steps],
    }


def step_json(step: StepSummary) -> dict[str, Any]:
    """One step of a run."""
    return {
        "step": step.number,
        "change": {
            "kind": step.change.kind,
            "name": step.change.name,
            "from": step.change.before,
            "from_asserted": step.change.asserted,
            "found": list(step.change.found),
            "to": step.change.after,
            "engine_name": step.change.engine_name,
        },
        "outcome": step.outcome,
        "verdict": step.verdict,
        "reason": step.reason,
        "text": step.text,
        "instances": {one.name: one.outcome for one in step.instances},
        "outage_seconds": step.outage_seconds,
        "failures_above_1_percent": step.failures_flagged,
        "started_at": step.started_at,
        "closed_at": step.closed_at,
    }
