"""Which hosts a doctor looks at, and which state folder of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changectl import traffic
from changectl.adapters.files import load_service
from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.project_files import service_names
from changectl.core.declared.grammar import nearest
from changectl.core.declared.instances import GroupInstances
from changectl.core.declared.placing import check_names, place
from changectl.core.declared.project import Project
from changectl.core.declared.service import Service
from changectl.core.errors import InputError, Problem
from changectl.core.ports import HostAddress
from changectl.workflow.doctor_tools import Patient


def patients(
    words: Sequence[str], project: Project, inventory: AnsibleInventory, note: Callable[[str], None]
) -> list[list[Patient]]:
    """For each host, in the inventory's order, one patient for each state folder there.

    Args:
        words: hosts and groups; empty: all that services of the project need (where they run, what switches their
            users, what sends their load), else the whole inventory.
        project: where the services lie.
        inventory: the hosts.
        note: is told of a service whose state folder cannot be known, where hosts were named.

    Raises:
        InputError: a name that the inventory does not have, no host is left, or (where no host is named) a service
            file that is not usable.
    """
    named = _named(words, inventory) if words else None
    folders: dict[str, dict[str | None, None]] = {}
    callers: set[str] = set()
    for name in service_names(project):
        try:
            service = load_service(name, project).service
            for host, folder in _of_service(service, project, inventory):
                folders.setdefault(host, {})[folder] = None
            callers |= {service.caller} if service.caller else set()
        except InputError as error:
            if named is None:
                raise
            note(f"service {name} is left out, and with it its state folder: {str(error).splitlines()[0]}")
    wanted = inventory.hosts("all")
    if named is not None:
        wanted = [host for host in wanted if host.name in named]
    elif folders:
        wanted = [host for host in wanted if host.name in folders or host.name in callers]
    if not wanted:
        raise InputError("there is no host to look at: the inventory names none, or --limit leaves none")
    sending = callers - set(folders)
    return [
        [Patient(host, one, host.name in sending) for one in folders.get(host.name) or {project.state_dir: None}]
        for host in wanted
    ]


def _named(words: Sequence[str], inventory: AnsibleInventory) -> set[str]:
    names = [name.strip() for word in words for name in word.replace(":", ",").split(",") if name.strip()]
    known = inventory.known()
    left = {*inventory.groups(), *(host.name for host in inventory.hosts("all"))}
    limited = ", or --limit leaves it out" if inventory.limit else ""
    problems = [
        Problem(f"there is no group or host `{name}`{limited}", str(inventory.source), hint=nearest(name, known))
        for name in names
        if name not in left
    ]
    if problems:
        raise InputError(problems)
    return {host.name for name in names for host in inventory.hosts(name)}


def _of_service(service: Service, project: Project, inventory: AnsibleInventory) -> list[tuple[str, str | None]]:
    """The hosts of a service that --limit leaves, with its state folder there; those that switch its users, too."""
    check_names(service, inventory.known())
    instances = service.instances
    patterns = [instances.group] if isinstance(instances, GroupInstances) else [one.host for one in instances]
    left: list[HostAddress] = [host for pattern in patterns for host in inventory.hosts(pattern)]
    if not left:
        return []
    placed = place(service, inventory.hosts)
    switching = [traffic.load(one.service.traffic).host for one in placed]
    return [
        *((one.host.name, one.service.state_dir or project.state_dir) for one in placed),
        *((host, None) for host in dict.fromkeys(switching) if host is not None),
    ]
