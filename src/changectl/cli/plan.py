"""`changectl plan`: look at the hosts and tell what apply would do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from changectl.cli._options import FORMAT, HostOptions, OutputOptions, example, host_options, output_options

if TYPE_CHECKING:
    from changectl.reports._blocks import Block
    from changectl.reports.preview import Impact
    from changectl.workflow.apply import Order
    from changectl.workflow.preview import StepPreview


def impact(step: StepPreview) -> Impact:
    """What the step costs."""
    from changectl.core.rollout import in_turn
    from changectl.reports.preview import Impact

    waiting = sum(not one.nothing_to_do for one in step.instances)
    return Impact(
        waiting, step.starts, step.measuring_seconds, step.load_seconds, step.traffic, step.watch,
        step.all_starts,
        in_turn([(one.instance, one.look) for one in step.instances]),
    )  # fmt: skip


def blocks(order: Order, steps: Sequence[StepPreview], code: int, unfinished: str | None = None) -> list[Block]:
    """What people read; `unfinished`: which run has to be settled first, and how."""
    from changectl.core.declared.wording import caller_words, load_words
    from changectl.reports import preview as report
    from changectl.reports._blocks import Line
    from changectl.reports._commands import told

    measured = f"{load_words(order.plan, order.service)}; sent from {caller_words(order.service)}"
    found: list[Block] = []
    for number, step in enumerate(steps, 1):
        found += report.step_blocks(number, step.change, step.refusal, impact(step), measured, step.sight)
        for one in step.instances:
            found += report.instance_blocks(
                one.instance, one.path, one.diff, one.three, one.checks, one.nothing_to_do, one.after_steps
            )
    end = Line("apply would proceed", "good") if code == 0 else Line("apply would refuse", "bad")
    waiting = told(unfinished, "bad") if unfinished else []
    return [*found, Line(""), *waiting, end]


def document(order: Order, steps: Sequence[StepPreview], code: int, unfinished: str | None = None) -> dict[str, Any]:
    """What `--json` prints, before known secrets are taken out of it."""
    from changectl.core.declared.measured_path import measured_path
    from changectl.core.declared.wording import load_words
    from changectl.reports import preview as report

    documents = []
    for step in steps:
        instances = [
            report.instance_json(
                one.instance, one.path, one.diff, one.three, one.checks, one.nothing_to_do, one.after_steps, one.look
            )
            for one in step.instances
        ]
        documents.append(report.step_json(step.change, step.refusal, impact(step), instances, step.sight))
    return {
        "format": FORMAT,
        "plan": order.plan_file,
        "service": order.plan.service,
        "measured": load_words(order.plan, order.service),
        "caller": order.service.caller,
        "path": None if order.plan.effort.observed_for is not None else measured_path(order.plan, order.service),
        "steps": documents,
        "unfinished": unfinished,
        "exit_code": code,
    }


@click.command(
    short_help="Look at the hosts and tell what apply would do.",
    epilog=example("changectl plan changeplans/0001-more-sequences.yml"),
)
@click.argument("plan", type=click.Path(path_type=Path))
@host_options
@output_options
def command(plan: Path, hosts: HostOptions, output: OutputOptions) -> int:
    """Contact the hosts and tell what `apply` would do; nothing is changed anywhere.

    Shows the exact difference per file, the value in the file, in the running process and in the engine, the starts
    and the time it takes, and every pre-check with its figure.

    Exit code: 0 apply would proceed, 2 the plan is not usable, 3 apply would refuse.
    """
    import json
    import shlex

    from changectl.cli._failures import tell
    from changectl.cli._orders import check_files, order_of
    from changectl.cli._present import print_blocks
    from changectl.cli.wiring import workplace
    from changectl.reports.printer import Printer
    from changectl.workflow.apply import settle_first
    from changectl.workflow.preview import preview, would_proceed

    check_files(plan, hosts.inventory)
    printer = Printer()
    with workplace(hosts, printer) as work:
        order = order_of(plan, work)
        steps = preview(order, work.tools)
        clean = work.tools.secrets.clean
        way = settle_first(order.plan.service, work.tools)
    code = 0 if would_proceed(steps) and way is None else 3

    def show() -> None:
        if output.json:
            printer.line(json.dumps(clean(document(order, steps, code, way)), indent=2))
        else:
            print_blocks(blocks(order, steps, code, way), printer)

    return tell(code, show, f"changectl plan {shlex.quote(str(plan))}")
