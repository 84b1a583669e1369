"""Which way the load takes: what a service and a plan say, and what proves that it arrived."""

from __future__ import annotations

import pytest
from tests.unit.core.declared.grammar_samples import SERVICE, changed, read_service

from changectl import kinds
from changectl.core.declared import plan
from changectl.core.declared.measured_path import arrived, check, measured_path
from changectl.core.declared.source import read_yaml
from changectl.core.declared.wording import load_words
from changectl.core.errors import Problem

PLAN = """\
version: 1
service: chat
reason: a reason
effort: quick
steps:
  - change: {parameter: {name: max-num-seqs, to: 128}}
    expect: neutral
"""
THROUGH = changed(SERVICE, ':8000"}}', ':8000", through_balancer: "http://lb1:8090/{{ inventory_hostname }}"}}')
BALANCED = changed(THROUGH, "normal: 8 streams}", "normal: 8 streams}, path: balancer")


def problems(plan_text: str, service_text: str) -> list[Problem]:
    source, service = read_yaml(plan_text, "plan.yml"), read_service(service_text)
    return list(check(plan.from_source(source, kinds=kinds.specs()), source, service))


def by_plan(path: str) -> str:
    return PLAN.replace("steps:", f"conditions: {{path: {path}}}\nsteps:")


@pytest.mark.parametrize(
    ("plan_text", "service_text", "path"),
    [
        (PLAN, SERVICE, "endpoint"),
        (PLAN, BALANCED, "balancer"),
        (by_plan("endpoint"), BALANCED, "endpoint"),
        (by_plan("balancer"), THROUGH, "balancer"),
    ],
)
def test_the_plan_chooses_else_the_service_else_it_is_the_instances_own(
    plan_text: str, service_text: str, path: str
) -> None:
    service = read_service(service_text)
    read = plan.load(plan_text, "plan.yml", kinds=kinds.specs())

    assert measured_path(read, service) == path
    assert ("through the balancer" in load_words(read, service)) == (path == "balancer")
    assert problems(plan_text, service_text) == []


@pytest.mark.parametrize(
    ("plan_text", "service_text", "place"),
    [
        (by_plan("balancer"), SERVICE, "plan.yml:5:20"),
        (PLAN, changed(BALANCED, "through_balancer", "name"), "chat.yml"),
    ],
)
def test_a_path_that_leads_nowhere_is_a_mistake_of_the_file_that_names_it(
    plan_text: str, service_text: str, place: str
) -> None:
    (problem,) = problems(plan_text, service_text)

    assert str(problem).startswith(place)
    assert "no address leads through the balancer to each of its instances" in problem.message
    assert "add `through_balancer: URL` to each instance in chat.yml" in (problem.hint or "")


@pytest.mark.parametrize(
    ("received", "generated", "proven"),
    [(1000, 1000, True), (1000, 1400, True), (1000, 980, True), (1000, 979, False), (1000, 0, False), (0, 0, False),
     (None, 1000, False), (1000, None, False)],
)  # fmt: skip
def test_what_was_received_has_to_be_what_the_instance_generated(
    received: float | None, generated: float | None, proven: bool
) -> None:
    assert (arrived(received, generated) == "") == proven
