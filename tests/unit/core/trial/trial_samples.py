"""Phases of trials for the tests: sound ones by default, with what a test wants to be otherwise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from changectl.core.judging.conditions import Fingerprint
from changectl.core.judging.judgement import HardEvent, Judgement, Row, Verdict
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.trial.noise_model import NoiseModel, Spread
from changectl.core.trial.order import Letter, looks, order
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial

MS = 0.001
DECLARED = ("slots",)
KEPT_NEUTRAL = (Verdict.UNCHANGED, "keep")
REGRESSED = (Verdict.REGRESSED, "revert")
INVALID = (Verdict.INVALID, "revert")
GOES_ON = (Verdict.INCONCLUSIVE, "go_on")
LEFT_TO_THE_PLAN = (Verdict.INCONCLUSIVE, "policy")
FIGURES = ("ttft_user", "tpot", "e2e_user")
CONDITIONS = Fingerprint({"settings": {"slots": "4"}, "files": {"/etc/x": "a"}, "model": "sha256:m"})
CHANGED = Fingerprint({"settings": {"slots": "8"}, "files": {"/etc/x": "a"}, "model": "sha256:m"})
LATENCIES = tuple(f"{metric}_{statistic}" for metric in FIGURES for statistic in ("p50", "p95", "mean"))
ALL = (*LATENCIES, "rps_ok", "out_tok_s", "kv_capacity")


def calibrated(deviation: float = 0.01, df: float = 30.0) -> NoiseModel:
    """A host whose figures are known to differ by so much from phase to phase."""
    return NoiseModel(dict.fromkeys(ALL, Spread(deviation**2, df)))


def judge(phases: Sequence[TrialPhase], **given: object) -> Judgement:
    """A standard effort on a host that is known, unless said otherwise."""
    usual = {"schedule": looks(4), "noise": calibrated(), "declared": DECLARED}
    return judge_trial(phases, **{**usual, **given})  # type: ignore[arg-type]


def end(judgement: Judgement) -> tuple[Verdict, str | None]:
    return judgement.verdict, judgement.decision


def level(name: str = "normal", **changes: object) -> LevelMeasurement:
    """A sound level of 300 requests: ttft 100 ms, tpot 20 ms, e2e 700 ms, 10 answers and 300 tokens a second."""
    values: dict[str, object] = {
        "name": name,
        "n": 300,
        "ok": 300,
        "latency": latencies(),
        "window": 30.0,
        "rps_ok": 10.0,
        "out_tok_s": 300.0,
        "tokens_in": 2400,
        "tokens_out": 9000,
        "finish": {"length": 300},
        "cache_hit": 0.0,
        "lag_p99": 0.0002,
        "per_prompt": {"a": (8.0, 30.0)},
    }
    return LevelMeasurement(**{**values, **changes})


def latencies(**factors: float) -> dict[str, dict[str, float | None]]:
    """The latencies of a sound level, some of them by a factor slower."""
    usual = {"ttft_user": 100 * MS, "tpot": 20 * MS, "e2e_user": 700 * MS}
    return {
        metric: {"p50": value * by, "p95": value * by * 1.2, "p99": None, "mean": value * by * 1.02}
        for metric, value in usual.items()
        for by in [factors.get(metric, 1.0)]
    }


def slower(metric: str, factor: float) -> LevelMeasurement:
    """A sound level, one of whose latencies is by a factor slower."""
    return level(latency=latencies(**{metric: factor}))


def slowed(base: LevelMeasurement, factor: float) -> LevelMeasurement:
    """Everything of a level by a factor slower, as on a slower host."""
    latency = {
        metric: {name: None if value is None else value * factor for name, value in figures.items()}
        for metric, figures in base.latency.items()
    }
    rates = {name: getattr(base, name) / factor for name in ("rps_ok", "out_tok_s")}
    return dataclasses.replace(base, latency=latency, **rates)


def failing(failed: int, cls: str = "http_5xx", **changes: object) -> LevelMeasurement:
    n = changes.get("n", 300)
    assert isinstance(n, int)
    failures = {cls: failed} if failed else {}
    return level(**{"n": n, "ok": n - failed, "failures": failures, "finish": {"length": n - failed}, **changes})


def few(base: LevelMeasurement, n: int = 40) -> LevelMeasurement:
    """So few requests that there is no P95."""
    latency = {metric: {**figures, "p95": None} for metric, figures in base.latency.items()}
    return dataclasses.replace(base, n=n, ok=n, finish={"length": n}, latency=latency)


def phase(number: int, letter: Letter, *levels: LevelMeasurement, **changes: object) -> TrialPhase:
    facts = changes.pop("facts", {})
    invalid = changes.pop("invalid", ())
    values: dict[str, object] = {
        "number": number,
        "letter": letter,
        "measurement": Measurement(levels or (level(),), facts, invalid),  # type: ignore[arg-type]
        "conditions": CHANGED if letter == "B" else CONDITIONS,
    }
    return TrialPhase(**{**values, **changes})  # type: ignore[arg-type]


def trial(pairs: int, make: Callable[[int, Letter], LevelMeasurement | Sequence[LevelMeasurement]]) -> list[TrialPhase]:
    """All phases of so many pairs; `make` is given the number and letter of each."""
    phases = []
    for number, letter in enumerate(order(pairs), start=1):
        made = make(number, letter)
        levels = [made] if isinstance(made, LevelMeasurement) else made
        phases.append(phase(number, letter, *levels))
    return phases


def steady(pairs: int, a: LevelMeasurement | None = None, b: LevelMeasurement | None = None) -> list[TrialPhase]:
    """All phases of A alike, and all of B."""
    return trial(pairs, lambda number, letter: (a if letter == "A" else b) or level())


def event(code: str = "oom_kill") -> HardEvent:
    return HardEvent(code, "the kernel ended a process")


def row(judgement: Judgement, place: str) -> Row:
    return next(one for one in judgement.rows if one.place == place)


def codes(judgement: Judgement) -> list[str]:
    return [reason.code for reason in judgement.reasons]


def unbounded(*statistics: str) -> dict[str, dict[str, float | None]]:
    """Latencies of which some statistics are infinite, because so many requests failed."""
    return {
        metric: {name: math.inf if name in statistics else value for name, value in figures.items()}
        for metric, figures in latencies().items()
    }
