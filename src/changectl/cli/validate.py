"""`changectl validate`: reads plans and all they name; touches no host."""

from __future__ import annotations

from pathlib import Path

import click

from changectl.cli._options import FORMAT, HostOptions, OutputOptions, example, inventory_options, output_options


@click.command(short_help="Check plans; no host is touched.", epilog=example("changectl validate changeplans/*.yml"))
@click.argument("plans", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PLAN...")
@inventory_options
@output_options
def command(plans: tuple[Path, ...], hosts: HostOptions, output: OutputOptions) -> int:
    """Check plans and say what they would do.

    Reads the plans, their services, workloads, tests and the inventory; no host is touched. Every problem is named
    with file, line, column and what to write instead. Exit code: 0 all good, 2 not.
    """
    import json

    from changectl.adapters.files import LoadedPlan, load_plan
    from changectl.adapters.inventory import AnsibleInventory
    from changectl.adapters.project_files import find_project, show
    from changectl.adapters.shipped import playbooks_folder
    from changectl.cli._places import demand_file, demand_inventory
    from changectl.cli._present import print_blocks
    from changectl.core.declared.placing import check_names, place, place_caller
    from changectl.core.declared.wording import plan_document, plan_sections
    from changectl.core.errors import InputError, Problem
    from changectl.reports._blocks import Heading, Line
    from changectl.reports.printer import Printer

    project = demand_inventory(find_project(Path.cwd(), hosts.inventory))
    inventory = AnsibleInventory(Path(project.inventory), playbooks_folder(), vault_ids=hosts.vault_ids)
    loaded: list[LoadedPlan] = []
    problems: dict[Problem, None] = {}  # a service that several plans name is reported once
    for path in plans:
        try:
            demand_file(path)
            plan = load_plan(path, project)
            check_names(plan.service, inventory.known())
            place(plan.service, inventory.hosts)  # what templates make of the hosts' variables
            place_caller(plan.service, inventory.host)
            loaded.append(plan)
        except InputError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise InputError(problems)
    printer = Printer()
    if output.json:
        documents = [plan_document(one.plan, one.service, one.workload, show(one.file)) for one in loaded]
        printer.line(json.dumps({"format": FORMAT, "plans": documents, "exit_code": 0}, indent=2))
        return 0
    for one in loaded:
        for section in plan_sections(one.plan, one.service, one.workload, show(one.file)):
            print_blocks([Heading(section.title), *(Line(f"- {text}") for text in section.sentences)], printer)
            printer.line()
    return 0
