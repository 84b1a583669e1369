"""Plays run on the Python that the door found, unless the inventory names one."""

from __future__ import annotations

from dataclasses import replace

from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.workflow.apply import apply


def test_plays_get_the_interpreter_of_the_door_where_the_inventory_names_none() -> None:
    stage = Stage()
    stage.apply(BETTER)

    assert {given["ansible_python_interpreter"] for given in stage.playbooks.arguments} == {"/usr/bin/python3"}


def test_what_the_inventory_names_is_left_to_ansible() -> None:
    stage = Stage()
    named = {"ansible_python_interpreter": "/opt/python3"}
    ready = stage.order(plan_text(BETTER))
    hosts = [replace(one.host, variables={**one.host.variables, **named}) for one in ready.placed]
    placed = tuple(replace(one, host=host) for one, host in zip(ready.placed, hosts, strict=True))

    apply(replace(ready, placed=placed), stage.tools)

    assert all("ansible_python_interpreter" not in given for given in stage.playbooks.arguments)
