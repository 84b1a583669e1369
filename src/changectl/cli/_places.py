"""Is this the right folder, and is that a plan? Asked first: a wrong place is one mistake, not many strange ones."""

from __future__ import annotations

from pathlib import Path

from changectl.adapters.project_files import show
from changectl.core.declared.project import FILE_NAME, Project
from changectl.core.errors import InputError, Problem


def demand_record(project: Project) -> bool:
    """Whether the project has a record yet.

    Raises:
        InputError: there is neither a record nor a project here: an empty list would be no answer.
    """
    if Path(project.database).exists():
        return True
    if project.file is None:
        hint = "go into the folder of your project, or start one: changectl init DIR"
        raise InputError(Problem(f"there is no project here: {_searched(project)}, and no record", hint=hint))
    return False


def demand_inventory(project: Project) -> Project:
    """The project, whose inventory is there. Raises InputError when it is not."""
    inventory = Path(project.inventory)
    if inventory.exists():
        return project
    if project.file is None:
        hint = "go into the folder of your project, name an inventory (-i PATH), or start a project: changectl init DIR"
        raise InputError(Problem(f"there is no project here: {_searched(project)}, and no inventory", hint=hint))
    hint = f"write your hosts there, name another file in {show(Path(project.file))}, or give one: -i PATH"
    raise InputError(Problem("there is no such inventory", show(inventory), hint=hint))


def demand_file(plan: Path) -> None:
    """Raises InputError when a folder stands where a plan has to."""
    if plan.is_dir():
        hint = f"name the plans in it: {plan}/*.yml"
        raise InputError(Problem("this is a folder, and not a plan", show(plan), hint=hint))


def _searched(project: Project) -> str:
    return f"no {FILE_NAME} in {project.root} or above it"
