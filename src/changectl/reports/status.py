"""Where every service stands: its last change, what is in force, what is unfinished or was never judged."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from changectl.core.history.out_of_service import OutOfService
from changectl.core.history.reading import Mix, RunSummary, ServiceStatus
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Command, Facts, Heading, Line
from changectl.reports._runs import FORMAT, run_json

Holders = Mapping[str, bool]  # run: whether its process may be alive


def as_json(services: Sequence[ServiceStatus], holders: Holders) -> dict[str, Any]:
    """The document of `changectl status --json`."""
    return {
        "format": FORMAT,
        "services": [
            {
                "service": status.service,
                "last": run_json(status.last),
                "standing": None if status.standing is None else status.standing.run,
                "open_runs": [{"run": run, "running": holders.get(run, False)} for run in status.open_runs],
                "needs_person": [
                    {"run": run.run, "outcome": run.outcome, "next": _command(run)} for run in status.needs_person
                ],
                "out_of_service": [
                    {"run": run, "instance": one.instance, "balancer": one.balancer, "since": one.since}
                    for run, one in status.out
                ],
                "kept_unjudged": list(status.kept_unjudged),
                "mixes": [
                    {"run": mix.run, "change": mix.change.name, "values": dict(mix.values)} for mix in status.mixes
                ],
            }
            for status in services
        ],
    }


def as_blocks(services: Sequence[ServiceStatus], holders: Holders) -> list[Block]:
    """A few lines for each service."""
    if not services:
        return [Line("no service has been changed yet", "quiet")]
    blocks: list[Block] = []
    for status in services:
        blocks.append(Heading(status.service, 2))
        blocks.append(Facts([("last change", _told(status.last)), ("in force", _standing(status))]))
        for mix in status.mixes:
            blocks += _mixed(mix)
        for run in status.open_runs:
            if holders.get(run, False):
                blocks.append(Line(f"run {run} is going on, as far as can be seen from here", "warning"))
            else:
                blocks.append(Line(f"run {run} was begun and its end is not recorded; its process is gone", "bad"))
                blocks.append(Command(f"changectl recover {run}", "- settle it by what its hosts say"))
        for open_run in status.needs_person:
            blocks += _person(open_run)
        blocks += [_out(run, one) for run, one in status.out]
        flagged = [f"{status.last.run}/{step.number}" for step in status.last.steps if step.failures_flagged]
        blocks += [Line(f"{step}: more than 1 % of the requests failed", "warning") for step in flagged]
        for step in status.kept_unjudged:
            blocks.append(Line(f"{step} was kept without a judgement", "warning"))
            run, slash, _ = step.partition("/")
            stays = "- it stays listed until a later change is judged and kept"
            back = Command(f"changectl revert {run}", f"{stays}, or it is taken back")
            blocks.append(back if slash else Line(stays))
    return blocks


def _mixed(mix: Mix) -> list[Block]:
    """A setting that not every instance has alike, and the two ways to make them equal."""
    values = "; ".join(f"{words.plain(value)} on {', '.join(names)}" for value, names in mix.by_value.items())
    return [
        Line(f"not the same everywhere since run {mix.run}: {mix.change.name} is {values}", "warning"),
        Command(f"changectl apply {shlex.quote(mix.plan)}", "- go on with the others, once the cause is mended"),
        Command(f"changectl revert {mix.run}", "- or take it back where that run kept it"),
    ]


def _out(run: str, one: OutOfService) -> Line:
    """What the record knows of an instance that was taken out; its balancer was not asked, and may have put it back."""
    taken = f"{one.instance} was taken out of service at {one.balancer} at {words.moment(one.since)} (run {run})"
    text = f"{taken}, and the record does not say that it is back"
    return Line(f"{text}: the balancer puts it back by itself once it answers there", "warning")


def _person(run: RunSummary) -> list[Block]:
    """A run that ended with exit code 6: what it is about, and the way on."""
    return [
        Line(f"A PERSON IS NEEDED: run {run.run} ended {run.outcome} (exit code 6)", "bad"),
        Command(f"changectl show {run.run}", "- see why"),
        Command(_command(run), "- mend the cause, then bring the saved configuration back"),
        Command(f"{_command(run)} --accept-present --reason TEXT", "- or accept what stands there now"),
    ]


def _command(run: RunSummary) -> str:
    return f"changectl revert {run.to_revert}"


def _told(run: RunSummary) -> str:
    return f"{run.run}, {words.moment(run.opened_at)}, {_changes(run)}: {words.outcome(run)}"


def _standing(status: ServiceStatus) -> str:
    open_work = [*status.open_runs, *(run.run for run in status.needs_person)]
    if open_work:
        return f"{words.UNKNOWN} until run {open_work[-1]} is settled"
    run = status.standing
    return f"{run.run}, {_changes(run)}" if run else "nothing that changectl changed"


def _changes(run: RunSummary) -> str:
    if run.reverts:
        return f"revert of {run.reverts}"
    return "; ".join(str(step.change) for step in run.steps) or "no steps"
