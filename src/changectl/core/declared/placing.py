"""From a service and an inventory to its instances: one endpoint and one manager target on one host each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

from changectl.core.declared.fields import is_template
from changectl.core.declared.grammar import in_file_order, nearest
from changectl.core.declared.instances import GroupInstances, InstanceEach
from changectl.core.declared.render import render_source
from changectl.core.declared.service import Service
from changectl.core.declared.source import Path, Source
from changectl.core.errors import InputError, Problem
from changectl.core.ports import HostAddress

_SWITCHED_BY = {"nginx": "member", "command": "out"}
_APART = {  # what to write so that each instance is switched alone
    "nginx": 'name each by what differs: `member: "{{ ansible_host }}:{{ port }}"`, with `vars: {port: ...}` for each',
    "command": 'name each in its commands: `out: "/opt/lb out {{ instance }}"`, and so in `in`',
}


@dataclass(frozen=True, slots=True)
class Placed:
    """An instance on its host, with the service's templates filled for it."""

    name: str
    host: HostAddress = field(repr=False)  # its variables, and what templates made of them, may be secret
    endpoint: str
    service: Service = field(repr=False)
    number: int = 0  # which one it is of the service's instances on its host, from 1; 0: the only one there

    @property
    def port(self) -> int | None:
        """The endpoint's port."""
        parts = urlsplit(self.endpoint)
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def check_names(service: Service, known: Collection[str]) -> None:
    """Compare the hosts or the group that a service names with those of the inventory.

    Args:
        service: the service.
        known: names of all groups and hosts.

    Raises:
        InputError: a name that the inventory does not have; the hint has the nearest one.
    """
    problems = [
        service.source.problem(path, f"the inventory has no {what} `{name}`", nearest(name, known))
        for path, what, name in (*_named(service), *_caller(service), *_balancer(service))
        if name not in known
    ]
    if problems:
        raise InputError(in_file_order(problems))


def place(service: Service, hosts_of: Callable[[str], Sequence[HostAddress]]) -> tuple[Placed, ...]:
    """All instances of a service, in inventory order.

    Args:
        service: the service.
        hosts_of: the hosts of a group, or the host of that name (`Inventory.hosts`); `--limit` may leave some out.

    Raises:
        InputError: no instance is left, or a template cannot be filled for a host.
    """
    placed: list[Placed] = []
    problems: list[Problem] = []
    found = [(path, each, host) for path, pattern, each in _declared(service) for host in hosts_of(pattern)]
    count = Counter(host.name for _, _, host in found)
    numbers = {name: iter(range(1, number + 1)) for name, number in count.items() if number > 1}
    for path, each, host in found:
        try:
            number = next(numbers[host.name]) if host.name in numbers else 0
            placed.append(replace(_placed(service, path, each, host, shared=bool(number)), number=number))
        except InputError as error:
            problems += error.problems
    problems = problems or _taken_twice(service, placed)
    if problems:
        raise InputError(in_file_order(problems))
    if not placed:
        names = ", ".join(f"`{name}`" for _, _, name in _named(service))
        hint = "look at --limit, and at `ansible-inventory --graph`"
        raise InputError(service.source.problem(("instances",), f"no host is left of {names}", hint))
    return tuple(placed)


def place_caller(service: Service, host_named: Callable[[str], HostAddress | None]) -> HostAddress | None:
    """The host that sends a service's load; None: each instance's own host does.

    Args:
        service: the service.
        host_named: the host of that name (`Inventory.host`).

    Raises:
        InputError: the inventory has no host of that name; a group is none.
    """
    if service.caller is None:
        return None
    host = host_named(service.caller)
    if host is None:
        hint = "the load comes from one host: write the name of one, not of a group"
        raise InputError(service.source.problem(("caller",), f"`{service.caller}` is no host of the inventory", hint))
    return host


def _taken_twice(service: Service, placed: Sequence[Placed]) -> list[Problem]:
    """Instances that only their templates could tell apart, and did not."""
    endpoints = Counter((one.host.name, one.endpoint) for one in placed)
    names = Counter(one.name for one in placed)
    twice = [f"the same endpoint on host {host}" for (host, _), count in endpoints.items() if count > 1]
    twice += [f"the name `{name}`" for name, count in names.items() if count > 1]
    hint = "give each its own `name`, `vars` and `endpoint`"
    problems = [service.source.problem(("instances",), f"two instances have {what}", hint) for what in twice]
    return problems + _started_together(service, placed) + _switched_together(service, placed)


def _started_together(service: Service, placed: Sequence[Placed]) -> list[Problem]:
    """Instances of one host that cannot be started apart, or whose run folders would not lie together."""
    problems = []
    for one, other in combinations(placed, 2):
        if one.host.name != other.host.name:
            continue
        both = f"{one.name} and {other.name} on host {one.host.name}"
        if one.service.manager == other.service.manager:
            text = f"{both} are started by the same thing, so neither can be changed alone"
            hint = 'give each its own by `vars`: `manager: {systemd: {unit: "chat-{{ port }}.service"}}`'
            problems.append(service.source.problem(("manager",), text, hint))
        if one.service.state_dir != other.service.state_dir:
            text = f"{both} have different folders for changectl's state"
            problems.append(service.source.problem(("state_dir",), text, "write one for each host"))
    return problems


def _switched_together(service: Service, placed: Sequence[Placed]) -> list[Problem]:
    """Instances of which one is taken out of service in the other's stead, so that one that serves is stopped."""
    first: dict[Hashable, str] = {}
    problems = []
    for one in placed:  # on whichever hosts: one balancer may have them all
        way = one.service.traffic
        if isinstance(way, str):
            continue
        what = way.command.out if way.command is not None else way.nginx
        other = first.setdefault((way.host or one.host.name, what), one.name)
        if other != one.name:
            text = f"{other} and {one.name} would be taken out of service by the same `{_SWITCHED_BY[way.name]}`"
            problems.append(service.source.problem(("traffic",), text, _APART[way.name]))
    return problems


def _named(service: Service) -> list[tuple[Path, str, str]]:
    instances = service.instances
    if isinstance(instances, GroupInstances):
        return [(("instances", "group"), "group or host", instances.group)]
    return [(("instances", index, "host"), "host", one.host) for index, one in enumerate(instances)]


def _caller(service: Service) -> list[tuple[Path, str, str]]:
    return [(("caller",), "host", service.caller)] if service.caller else []


def _balancer(service: Service) -> list[tuple[Path, str, str]]:
    way = service.traffic
    if isinstance(way, str) or way.host is None or is_template(way.host):
        return []
    return [(("traffic", way.name, "host"), "host", way.host)]


def _declared(service: Service) -> list[tuple[Path, str, InstanceEach]]:
    instances = service.instances
    if isinstance(instances, GroupInstances):
        return [(("instances", "each"), instances.group, instances.each)]
    return [(("instances", index), one.host, one) for index, one in enumerate(instances)]


def _placed(service: Service, path: Path, each: InstanceEach, host: HostAddress, *, shared: bool) -> Placed:
    """An instance; without a name of its own it is called as its host, and where others run there too HOST:PORT."""
    placed = _place(service, path, each, host, host.name)
    if each.name is not None or not shared:
        return placed
    return _place(service, path, each, host, f"{host.name}:{placed.port}")


def _place(service: Service, path: Path, each: InstanceEach, host: HostAddress, usual: str) -> Placed:
    variables = {**host.variables, **each.vars}
    variables.setdefault("inventory_hostname", host.name)
    variables.setdefault("ansible_host", host.name)
    source = service.source
    own = {key: value for key, value in _at(source.data, path).items() if key != "host"}
    name = own.setdefault("name", usual)
    variables["instance"] = name
    alone = {**source.data, "instances": [{**own, "host": host.name}]}
    moved = {
        ("instances", 0, *old[len(path) :]): place for old, place in source.values.items() if old[: len(path)] == path
    }
    rendered = render_source(
        Source(source.file, alone, {**source.values, **moved}, source.keys), variables, host=host.name
    )
    if isinstance(rendered.instances, GroupInstances):
        raise InputError(source.problem(path, "not one instance"))
    (instance,) = rendered.instances
    return Placed(instance.name or usual, host, instance.endpoint, rendered)


def _at(data: Any, path: Path) -> dict[str, Any]:
    for part in path:
        data = data[part]  # the grammar has seen that it is there
    return dict(data)
