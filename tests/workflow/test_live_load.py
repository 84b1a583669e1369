"""Load beside live users: watched before, held against a tenth of what they send, on record whatever came of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflow.live_stage import LIVE_SERVICE, Users, live_stage
from tests.workflow.stage import Stage

from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.preview import preview, would_proceed

STEP = '  - change: {environment: {name: OMP_NUM_THREADS, from: "1", to: "2"}}\n    expect: neutral\n'
LOW = LIVE_SERVICE.replace("levels: {normal: 8 streams}", "levels: {low: 1 stream}")
RATE = LIVE_SERVICE.replace("levels: {normal: 8 streams}", "levels: {low: 0.2 rps}")


def order(stage: Stage) -> Any:
    return stage.order(f"version: 1\nservice: chat\nreason: a story\neffort: quick\nsteps:\n{STEP}")


def changed(stage: Stage) -> RunEnd:
    return apply(order(stage), stage.tools)


def checked(stage: Stage) -> dict[str, Any]:
    (body,) = stage.journal.bodies("precheck")
    found: dict[str, Any] = next(one for one in body["results"] if one["name"] == "live_load")
    return found


def under_way(users: Users, number: int) -> Any:
    return lambda host: f"{users.page(host)}vllm:num_requests_running {number}\nvllm:num_requests_waiting 0\n"


@pytest.mark.parametrize(("service", "told"), [(LOW, "0.3 streams"), (RATE, "0.099 rps")])
def test_more_than_a_tenth_of_what_users_send_is_refused_before_anything_is_sent(service: str, told: str) -> None:
    stage = live_stage(Users(rate=1.0), service)
    stage.host.metrics = under_way(Users(rate=1.0), 3)
    end = changed(stage)

    assert (end.exit_code, end.last.reason) == (3, "live_load"), end.last.text
    assert f"a tenth of that, {told}, is the most" in end.last.text
    assert not [name for name in stage.world.trace if name.endswith(" measure")]
    assert checked(stage)["state"] == "failed"
    assert "3 under way at a time" in checked(stage)["figure"]


def test_the_preview_says_the_same_beforehand() -> None:
    stage = live_stage(Users(rate=1.0), RATE)
    (step,) = preview(order(stage), stage.tools)

    assert not would_proceed([step])
    (found,) = [check for check in step.instances[0].checks if check.name == "live_load"]
    assert "0.099 rps, is the most" in found.detail


def test_what_fits_beside_the_users_is_sent_and_the_look_is_on_record() -> None:
    stage = live_stage(Users(rate=4.0), RATE)
    changed(stage)

    assert checked(stage)["state"] == "passed"
    assert checked(stage)["figure"].startswith("live in 10s: 3.9 requests/s")
    assert "`low` adds 0.2 rps, and 0.39 rps may be added" in checked(stage)["detail"]
    assert [name for name in stage.world.trace if name.endswith(" measure")]


def test_an_instance_that_serves_nobody_for_a_minute_has_no_users_to_spare() -> None:
    stage = live_stage(Users(rate=0.0), LOW)
    before = stage.world.seconds
    changed(stage)

    assert checked(stage)["state"] == "passed"
    assert "it serves nobody" in checked(stage)["detail"]
    assert stage.world.seconds - before >= 60


def test_where_the_service_allows_load_on_live_nobody_waits_for_a_look() -> None:
    stage = live_stage(Users(rate=1.0), LOW + "limits: {load_on_live: true}\n")
    changed(stage)

    assert checked(stage)["state"] == "not_applicable"
