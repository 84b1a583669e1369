"""Levels of a trial end as soon as their figures are precise enough: told to the generator, recorded, and no fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, SERVICE, Stage
from tests.workflow.test_extend import SHORT, extended
from tests.workflow.test_trial import GAIN, carried_out, letters, plan

from changectl.core.measuring.measurement import parse_records
from changectl.core.replaying.basis import Basis
from changectl.core.trial.noise_model import PRIOR

RATES = SERVICE.replace("{normal: 8 streams}", "{normal: 8 streams, peak: 6 rps}")


def levels(stage: Stage, number: int = 0) -> dict[str, dict[str, Any]]:
    return {level["name"]: level for level in stage.host.sent_levels[number]}


def measured(stage: Stage) -> list[dict[str, Any]]:
    return [body["summary"]["levels"][0] for body in stage.journal.bodies("measure.outcome")]


def test_the_generator_is_told_how_precise_each_judged_figure_has_to_be() -> None:
    stage = Stage()
    carried_out(stage, plan(BETTER, GAIN))

    enough = levels(stage)["normal"]["enough"]
    assert enough["requests"] == 600
    assert set(enough["errors"]) == {
        "ttft_user_p50", "ttft_user_p95", "tpot_p50", "tpot_p95", "e2e_user_p50", "e2e_user_p95", "rps_ok", "out_tok_s",
    }  # fmt: skip
    assert set(enough["errors"].values()) == {PRIOR.deviation / 2}
    assert all(sent == stage.host.sent_levels[0] for sent in stage.host.sent_levels), "for A and B alike"


def test_a_level_with_a_rate_keeps_its_schedule() -> None:
    stage = Stage(service_text=RATES)
    carried_out(stage, plan(BETTER, GAIN))

    assert "enough" in levels(stage)["normal"]
    assert "enough" not in levels(stage)["peak"]


def test_a_quick_trial_and_levels_of_so_many_requests_use_all_that_they_are_given() -> None:
    quick = Stage()
    quick.apply(BETTER)
    counted = Stage()
    carried_out(counted, plan(BETTER, GAIN) + "conditions: {requests: 24}\n")

    for stage in (quick, counted):
        assert not any("enough" in level for sent in stage.host.sent_levels for level in sent)
        assert all((level["may_end"], level["ended"]) == (False, None) for level in measured(stage))


def test_a_level_that_ended_early_is_on_record_and_told_and_judged_as_any_other() -> None:
    stage = Stage()
    stage.host.requests, stage.host.precise_after = 80, 10.0
    end = carried_out(stage, plan(BETTER, GAIN))

    assert end.exit_code == 0
    assert stage.journal.bodies("verdict")[-1]["verdict"] == "improved"
    for level in measured(stage):
        assert (level["ended"], level["may_end"], level["asked_seconds"]) == (10.0, True, 20.0)
    assert stage.journal.bodies("measure.outcome")[0]["basis"]["ended"] == {"normal": 10.0}
    assert "gpu1: precise before its time was used: normal after 10s" in stage.reporter.notes


def test_its_figures_follow_from_the_record_to_the_last_bit() -> None:
    stage = Stage()
    stage.host.requests, stage.host.precise_after = 80, 10.0
    carried_out(stage, plan(BETTER, GAIN))

    for body in json.loads(json.dumps(stage.journal.bodies("measure.outcome"))):
        records = parse_records(stage.records.blobs[body["blob"]].decode())
        again = Basis.from_json(body["basis"]).measurement(records).to_json()
        assert json.loads(json.dumps(again)) == body["summary"]


def test_phases_of_which_some_ended_early_and_some_did_not_are_compared() -> None:
    stage = Stage()
    stage.host.requests = 80

    def now_and_then(host: FakeHost, _: str) -> None:
        host.precise_after = 10.0 if len(host.sent_levels) % 2 else None

    stage.host.on_call = now_and_then
    end = carried_out(stage, plan(BETTER, GAIN))

    assert end.exit_code == 0
    assert {level["ended"] for level in measured(stage)} == {None, 10.0}
    saved = [body for body in stage.journal.bodies("measure.outcome") if body["phase"] == "A"]
    rates = [body["summary"]["levels"][0]["rps_ok"] for body in saved]
    assert rates == pytest.approx([rates[0]] * len(rates)), "throughput does not depend on how long it lasted"


def test_time_that_was_not_needed_is_no_promise_for_the_next_phase() -> None:
    used, spared = Stage(), Stage()
    spared.host.requests, spared.host.precise_after = 80, 12.0
    text = plan(BETTER, GAIN, "{time: 40s}")
    for stage in (used, spared):
        carried_out(stage, text)

    assert len(letters(used)) == 4
    assert len(letters(spared)) < 4, "each phase could have taken eight seconds more than it did"


def test_a_trial_that_goes_on_measures_as_its_phases_on_record_were_measured() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = Stage()
    carried_out(stage, text)
    body = stage.journal.bodies("measure.outcome")[0]
    assert body["summary"]["levels"][0]["may_end"] is True
    extended(stage, text)
    assert all("enough" in level for sent in stage.host.sent_levels for level in sent if level["name"] == "normal")


def test_one_that_an_earlier_program_began_lets_every_level_use_its_time() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = Stage()
    carried_out(stage, text)
    for body in stage.journal.bodies("measure.outcome"):
        for level in body["summary"]["levels"]:
            del level["may_end"], level["ended"]
    before = len(stage.host.sent_levels)
    extended(stage, text)

    assert stage.host.sent_levels[before:]
    assert not any("enough" in level for sent in stage.host.sent_levels[before:] for level in sent)


@pytest.mark.parametrize("promise", ["{failures: -50%}", "{goodput: +10%}"])
def test_a_gain_that_takes_every_request_leaves_all_levels_their_time(promise: str) -> None:
    stage = Stage(service_text=SERVICE + "slo: {ttft_user_p95: <= 900ms}\n")
    carried_out(stage, plan(BETTER, promise))

    assert stage.host.sent_levels
    assert not any("enough" in level for sent in stage.host.sent_levels for level in sent)
