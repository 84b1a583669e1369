"""The load of a step and the fingerprint of a phase."""

from __future__ import annotations

import pytest
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text

from changectl.core.conditions import single_difference
from changectl.core.errors import Refused
from changectl.workflow.conditions import LoadPlan, fingerprint, load_plan
from changectl.workflow.contact import Contact, make_contact, open_target

PROMPTS = [{"id": "p", "prompt": "once"}]


def plan_for(stage: Stage, extra: str = "") -> LoadPlan:
    order = stage.order(plan_text(BETTER) + extra)
    return load_plan(order.plan, order.service, "openai_completions", PROMPTS)


def contact(stage: Stage) -> Contact:
    step = stage.order(plan_text(BETTER)).plan.steps[0]
    return make_contact(open_target(stage.placed[0], stage.tools), step, stage.tools)


def test_a_phase_is_as_long_as_the_plan_says_then_the_service_then_the_default() -> None:
    assert plan_for(Stage()).seconds == 20.0
    stage = Stage(service_text=SERVICE.replace("{normal: 8 streams}}", "{normal: 8 streams}, seconds: 30s}"))
    assert plan_for(stage).seconds == 30.0
    assert plan_for(stage, "conditions: {seconds: 5s}\n").seconds == 5.0


def test_a_number_of_requests_takes_the_place_of_a_time() -> None:
    load = plan_for(Stage(), "conditions: {requests: 24}\n")
    assert (load.requests, load.seconds, load.expected_seconds) == (24, None, None)
    assert load.job(open_target(Stage().placed[0], Stage().tools), "s")["levels"] == [
        {"name": "normal", "streams": 8, "requests": 24}
    ]


def test_a_phase_is_given_up_only_after_its_last_request_had_its_time() -> None:
    load = plan_for(Stage())
    assert load.timeout >= 20.0 + 120.0


def test_a_live_service_gets_its_low_level_only() -> None:
    text = SERVICE.replace("limits: {load_on_live: true}\n", "")
    text = text.replace("levels: {normal: 8 streams}", "levels: {low: 1 stream, normal: 8 streams}")
    stage = Stage(service_text=text)
    assert list(plan_for(stage).levels) == ["low"]


def test_a_live_service_without_a_low_level_is_refused() -> None:
    with pytest.raises(Refused, match="called `low`"):
        plan_for(Stage(service_text=SERVICE.replace("limits: {load_on_live: true}\n", "")))


def test_the_token_travels_in_the_job_and_in_no_fact() -> None:
    token = "sk-live-0123456789abcdef"
    stage = Stage(service_text=SERVICE + 'auth: {bearer: "{{ key }}"}\n', variables={"key": token})
    load = plan_for(stage)
    job = load.job(open_target(stage.placed[0], stage.tools), "salt")
    assert job["headers"] == {"Authorization": f"Bearer {token}"}
    assert token not in str(load.facts())


def test_the_same_state_has_the_same_fingerprint() -> None:
    stage = Stage()
    found = contact(stage)
    one, other = (fingerprint(found, found.observed, "b1", plan_for(stage), stage.tools.secrets) for _ in range(2))
    assert one.digest() == other.digest()


def test_the_declared_change_is_one_difference_and_anything_else_another() -> None:
    stage = Stage()
    found, load, secrets = contact(stage), plan_for(stage), stage.tools.secrets
    before = fingerprint(found, found.observed, "b1", load, secrets)
    assert stage.host.process is not None
    stage.host.process.argv[-1] = "8"
    after = fingerprint(found, found.target.inspect(), "b1", load, secrets)
    assert single_difference(before, after, {"parallel"}) == []

    stage.host.process.environ["LD_PRELOAD"] = "/x.so"
    moved = fingerprint(found, found.target.inspect(), "b1", load, secrets)
    assert [one.key for one in single_difference(before, moved, {"parallel"})] == ["environment.LD_PRELOAD"]
    newer = fingerprint(found, found.observed, "b2", load, secrets)
    assert [one.key for one in single_difference(before, newer, {"parallel"})] == ["engine_version"]


def test_what_systemd_makes_anew_for_every_start_is_no_difference() -> None:
    stage = Stage()
    found, load, secrets = contact(stage), plan_for(stage), stage.tools.secrets
    before = fingerprint(found, found.observed, "b1", load, secrets)
    assert stage.host.process is not None
    stage.host.process.environ["INVOCATION_ID"] = "1"
    assert single_difference(before, fingerprint(found, found.target.inspect(), "b1", load, secrets), set()) == []


def test_values_of_variables_are_kept_as_digests() -> None:
    stage = Stage()
    assert stage.host.process is not None
    stage.host.process.environ["ODD_NAME"] = "a-value-nobody-may-see"
    found = contact(stage)
    facts = fingerprint(found, found.observed, "b1", plan_for(stage), stage.tools.secrets).to_json()
    assert "a-value-nobody-may-see" not in str(facts)
