"""Where a service runs: a group of the inventory, or a list of instances."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from changectl.core.declared.fields import Endpoint, Line, is_template
from changectl.core.declared.grammar import Fault, Grammar, fault, faults


class InstanceEach(Grammar):
    """What every instance of a group has; templates make the difference between the hosts."""

    endpoint: Endpoint = Field(description="base URL", examples=['"http://{{ ansible_host }}:8000"'])
    name: Line | None = Field(
        None, description="the instance's name; default: its host, and HOST:PORT where several share the host"
    )
    through_balancer: Endpoint | None = Field(
        None,
        description="base URL under which the balancer passes requests on to this instance alone",
        examples=['"http://lb1:8090/{{ inventory_hostname }}"'],
    )
    vars: dict[str, str] = Field({}, description="more variables for templates")


class GroupInstances(Grammar):
    """One instance on every host of an inventory group."""

    group: Line = Field(description="a group of the inventory", examples=["gpu"])
    each: InstanceEach = Field(description="what all of them have")


class Instance(InstanceEach):
    """One endpoint and one manager target on one host."""

    host: Line = Field(description="a host of the inventory", examples=["gpu1"])


def _shape(value: Any) -> str:
    return "<group>" if isinstance(value, dict | GroupInstances) else "<list>"


def _distinct(instances: tuple[Instance, ...]) -> tuple[Instance, ...]:
    if not instances:
        raise fault("a service has at least one instance", 'write `- {host: gpu1, endpoint: "http://10.0.0.5:8000"}`')
    found = []
    for index, instance in enumerate(instances):
        before = instances[:index]
        if instance.name is not None and any(one.name == instance.name for one in before):
            hint = "give each its own `name`, or none: then it is called as its host, or HOST:PORT"
            found.append(Fault(f"two instances are called `{instance.name}`", hint, (index,)))
        same_text = any((one.host, one.endpoint) == (instance.host, instance.endpoint) for one in before)
        if same_text and not is_template(instance.endpoint):
            found.append(
                Fault("two instances have the same endpoint", "each instance has its own", (index, "endpoint"))
            )
    if found:
        raise faults(found)
    return instances


InstanceList = Annotated[tuple[Instance, ...], AfterValidator(_distinct)]
Instances = Annotated[
    Annotated[GroupInstances, Tag("<group>")] | Annotated[InstanceList, Tag("<list>")], Discriminator(_shape)
]
