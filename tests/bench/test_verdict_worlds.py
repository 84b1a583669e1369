"""What the simulated worlds hand to the product's reader is what they say it is; and what the rivals make of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.bench.verdict import rivals, trial
from tests.bench.verdict.service import TWENTY_ONE, USUAL
from tests.bench.verdict.worlds import NONE, TYPICAL, Effect, Host, World

from changectl.core.judging.baseline import unusable
from changectl.core.judging.gates import shortfalls
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.records import Record, Records

MS = 1_000_000


def host(world: World = TYPICAL, effect: Effect = NONE, seed: int = 1) -> Host:
    return Host(world, USUAL, effect, np.random.default_rng(seed), 8)


def read(lines: Sequence[str]) -> Records:
    return parse_records("\n".join(lines))


def test_a_world_writes_what_the_load_generator_writes_and_the_same_for_the_same_seed() -> None:
    lines = host().phase(1, "A").lines
    assert lines == host().phase(1, "A").lines
    assert lines != host(seed=2).phase(1, "A").lines
    assert all(line == json.dumps(json.loads(line)) for line in lines)
    records = read(lines)
    assert {record.level for record in records} == set(USUAL.levels)
    assert all(record.ok for record in records)


def test_no_gate_finds_fault_with_a_sound_phase() -> None:
    for world in (TYPICAL, replace(TYPICAL, rho=0.9), replace(TYPICAL, bimodal=0.2)):
        phase, _ = trial.measured(host(world), USUAL, 1, "A")
        assert unusable(phase.measurement) == []
        assert [list(shortfalls(level)) for level in phase.measurement.levels] == [[], [], []]


def test_each_stream_sends_the_next_request_when_the_last_one_is_answered() -> None:
    records = [record for record in read(host().phase(1, "A").lines) if record.level == "normal"]
    for stream in range(8):
        own = sorted((record for record in records if record.stream == stream), key=lambda record: record.t_planned)
        pairs = list(pairwise(own))
        assert len(pairs) > 10
        assert all(first.t_end is not None and first.t_end <= second.t_planned for first, second in pairs)


def test_a_calibration_sees_about_the_noise_that_the_world_has() -> None:
    """Between starts 1 %, and what is left of the rounds and requests of one phase."""
    model = trial.calibrated(TYPICAL, USUAL, np.random.default_rng(3))
    assert model.of("ttft_user_p50 at normal").source == "calibrated"
    assert 0.009 < model.measured["ttft_user_p50 at normal"].deviation < 0.020
    assert 0.006 < model.measured["e2e_user_p50 at normal"].deviation < 0.016


def test_a_tail_is_one_request_in_twenty_that_takes_three_times_as_long() -> None:
    slow = Effect("tail", tail=0.05)
    plain, tailed = (read(host(effect=effect).phase(2, "B").lines) for effect in (NONE, slow))
    middle, tail = (np.array([record.duration("ttft_user") for record in records]) for records in (plain, tailed))
    assert np.median(tail) == pytest.approx(np.median(middle), rel=0.05)
    assert 0.02 < float((tail > 2 * np.median(tail)).mean()) < 0.09


def test_failures_come_where_the_world_or_the_change_makes_them_and_may_be_left_out_of_the_records() -> None:
    bursts = read(host(replace(TYPICAL, burst=1.0)).phase(1, "A").lines)
    assert 0.01 < np.mean([not record.ok for record in bursts]) < 0.2
    shed = Effect("shed", failing=0.3)
    assert all(record.ok for record in read(host(effect=shed).phase(1, "A").lines))
    assert 0.2 < np.mean([not record.ok for record in read(host(effect=shed).phase(2, "B").lines)]) < 0.5
    hidden = read(host(effect=replace(shed, left_out=True)).phase(2, "B").lines)
    assert all(record.ok for record in hidden)
    assert sorted(record.i for record in hidden if record.level == "peak") != list(range(len(hidden)))


def test_as_many_figures_are_guarded_as_a_shape_says() -> None:
    phases = [trial.measured(host(), USUAL, number, letter)[0] for number, letter in ((1, "A"), (2, "B"))]  # type: ignore[arg-type]
    assert len(phases[0].measurement.levels) * 8 == int(USUAL.name)
    assert len(TWENTY_ONE.levels) * 4 + 1 == int(TWENTY_ONE.name)


def answered(first_ms: Sequence[float], *, failed: int = 0) -> list[Record]:
    """Answers of one level, one after the other, then some that failed."""
    good = [
        Record(
            i=index, level="low", stream=0, prompt="p", round=0, t_planned=index * 1000 * MS, cls="ok",
            t_start=index * 1000 * MS, t_sent=index * 1000 * MS, t_first=int((index * 1000 + first) * MS),
            t_last=int((index * 1000 + first + 190) * MS), t_end=int((index * 1000 + first + 190) * MS), n_out=20,
        )
        for index, first in enumerate(first_ms)
    ]  # fmt: skip
    bad = [
        Record(i=len(good) + index, level="low", stream=0, prompt="p", round=0, t_planned=index * MS, cls="http_5xx")
        for index in range(failed)
    ]
    return [*good, *bad]


def both(before: list[Record], after: list[Record]) -> rivals.Phases:
    return [("A", before), ("B", after)]


STEADY = [100.0 + index % 7 for index in range(100)]


def test_the_naive_rules_see_their_percentages_and_nothing_else() -> None:
    same = both(answered(STEADY), answered(STEADY))
    slower = both(answered(STEADY), answered([1.06 * one for one in STEADY]))
    assert {name: rival(same) for name, rival in rivals.RIVALS.items()} == dict.fromkeys(rivals.RIVALS, "passed")
    assert rivals.naive_mean(slower) == "regressed"
    assert rivals.naive_p95(slower) == "passed"
    assert rivals.mann_whitney(slower) == "regressed"
    assert rivals.benchstat(slower) == "regressed"


def test_who_leaves_failures_out_passes_a_service_that_sheds_load() -> None:
    shed = both(answered(STEADY), answered([0.8 * one for one in STEADY], failed=60))
    passed = {name for name, rival in rivals.RIVALS.items() if rival(shed) == "passed"}
    assert passed >= {"mean +5 %", "P95 +10 %", "Mann-Whitney", "Kayenta, requests", "benchstat"}


def test_argo_fails_at_the_fourth_failed_look_and_errs_without_figures() -> None:
    def looked(bad: int) -> str:
        after = [130.0 if index < 10 * bad else 100.0 for index in range(100)]
        return rivals.argo(both(answered(STEADY), answered(after)))

    assert looked(3) == "passed"
    assert looked(4) == "regressed"
    silent = [record._replace(t_first=None, t_last=None) for record in answered(STEADY)]
    assert rivals.argo(both(answered(STEADY), silent)) == "inconclusive"


def test_fewer_than_four_runs_tell_benchstat_nothing() -> None:
    few = both(answered([100.0, 101.0, 102.0]), answered([200.0, 201.0, 202.0]))
    assert rivals.benchstat(few) == "passed"
