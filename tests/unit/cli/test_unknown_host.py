"""A host that nobody knows ends a command before any lock, any run in the record and any connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.cli_runner import Run

from changectl.store import open_store

PLAN = "changeplans/0001-more-sequences.yml"


def nothing_was_begun(project: Path) -> bool:
    with open_store(project / "changectl.db") as store:
        return store.journal.runs() == [] and store.locks.held() == []


@pytest.mark.parametrize("command", ["apply", "plan", "validate"])
def test_a_typo_in_the_name_of_a_group_is_told_with_the_nearest_and_begins_nothing(
    project: Path, run: Run, command: str
) -> None:
    service = project / "inventory/services/chat.yml"
    service.write_text(service.read_text().replace("group: gpu ", "group: gpv "))
    ended = run(command, PLAN)

    assert ended.code == 2
    assert "the inventory has no group or host `gpv`\n  did you mean `gpu`?" in ended.err
    assert nothing_was_begun(project)


TRAFFIC = "traffic: {{{way}: {{host: lb9, {more}}}}}\ndrain: 30s\n"


@pytest.mark.parametrize("command", ["apply", "plan", "validate"])
@pytest.mark.parametrize(
    ("way", "more"),
    [
        ("nginx", 'file: /etc/nginx/conf.d/chat.conf, upstream: chat, member: "10.0.0.5:8000"'),
        ("command", "out: /opt/lb out gpu1, in: /opt/lb in gpu1"),
    ],
)
def test_a_balancer_that_the_inventory_does_not_have_is_told_before_anything_begins(
    project: Path, run: Run, command: str, way: str, more: str
) -> None:
    service = project / "inventory/services/chat.yml"
    service.write_text(service.read_text() + TRAFFIC.format(way=way, more=more))
    ended = run(command, PLAN)

    assert ended.code == 2
    assert f"traffic/{way}/host: the inventory has no host `lb9`" in ended.err
    assert nothing_was_begun(project)


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        ("http://{{ ansible_hots }}:8000", "ansible_hots"),
        ("htp://{{ ansible_host }}:8000", "endpoint: what the template gives does not fit here"),
    ],
)
def test_what_templates_make_of_the_inventory_is_validated_without_a_host(
    project: Path, run: Run, endpoint: str, told: str
) -> None:
    service = project / "inventory/services/chat.yml"
    service.write_text(service.read_text().replace("http://{{ ansible_host }}:8000", endpoint))
    ended = run("validate", PLAN)

    assert ended.code == 2
    assert told in ended.err
    assert nothing_was_begun(project)


@pytest.mark.parametrize("command", ["apply", "plan"])
def test_a_limit_that_leaves_no_host_is_a_mistake_and_not_a_run_without_hosts(
    project: Path, run: Run, command: str
) -> None:
    ended = run(command, PLAN, "--limit", "gpu-nowhere")

    assert ended.code == 2
    assert "instances: no host is left of `gpu`\n  look at --limit" in ended.err
    assert nothing_was_begun(project)
