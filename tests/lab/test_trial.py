"""Trials of several pairs on a real host: the saved and the new configuration in turns, each freshly started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(360, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

PLAN = """\
version: 1
service: chat
reason: a test of the lab
effort: {{time: {time}}}
outage: 5m
conditions: {{{length}}}
steps:
  - change: {change}
    expect: {expect}
{accept}"""
#: What more slots cost on one core: each request's tokens come more slowly. It is declared, and so are whole answers.
TRADE = "    accept: {tpot: <= 250ms, e2e_user: <= 20s, rps_ok: '>= 3 rps', out_tok_s: '>= 30 tok/s'}\n"
#: One limit for the median and for the tail: what is judged is which of the two the change leaves within it. The rest
#: is free, since all of it moves where this machine is busy.
ONE_LIMIT = (
    "    accept: {ttft_user_p50: <= 800ms, ttft_user_p95: <= 800ms, tpot: <= 5s, e2e_user: <= 60s, "
    "rps_ok: '>= 0.1 rps', out_tok_s: '>= 1 tok/s'}\n"
)
SLOTS = "{{parameter: {{name: parallel, from: {before}, to: {after}}}}}"
#: A stand-in for a change after which a share of the requests is slow: the lab's launcher does as it says
#: (harness/launcher_faults.py). Every twelfth request is more than the twentieth that a P95 looks at.
TAIL = '{environment: {name: LAB_FAULT_TAIL, from: "0@1500", to: "12@1500"}}'


def planned(
    desk: Desk, change: str, expect: str, *, time: str = "90s", length: str = "requests: 60", accept: str = ""
) -> str:
    text = PLAN.format(change=change, expect=expect, time=time, length=length, accept=accept)
    (desk.folder / "trial.yml").write_text(text)
    return "trial.yml"


def served(h1: LabHost, llama_service: ServiceMaker, slots: int, **options: Any) -> LlamaService:
    flags = {"--ctx-size": "4096", "--parallel": str(slots), "--threads": "1"}
    return llama_service(h1, flags=flags, **options)


def trial(desk: Desk, plan: str, code: int) -> dict[str, Any]:
    """Apply the plan: its step, whose verdict comes out of the raw records, too."""
    document = desk.measured(plan, code, timeout=240).document
    comes_out_of_its_raw_records(desk, document["run"]["run"])
    (step,) = document["steps"]
    return dict(step)


def comes_out_of_its_raw_records(desk: Desk, run: str) -> None:
    """Whether the verdict is the same to the last bit, and its page can be drawn."""
    (found,) = desk.run("judge", run, "--json").expect(0).document["verdicts"]
    assert (found["same"], found["differs"]) == (True, None)
    desk.run("show", run, "--html", "run.html").expect(0)
    assert "Distributions" in (desk.folder / "run.html").read_text()


def phases(step: dict[str, Any]) -> str:
    return "".join(phase["phase"] for phase in step["measurements"])


def worse(step: dict[str, Any]) -> set[tuple[str, str | None]]:
    """The figures that were found worse: metric and level."""
    return {(row["metric"], row["level"]) for row in step["rows"] if row["state"] == "breach"}


def test_a_gain_is_seen_and_the_change_is_kept_for_a_declared_trade(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = served(h1, llama_service, 1)
    desk.lay_out([service])

    # Room for the three pairs that it takes also where this machine is busy; it ends when it is decided.
    gain = "{ttft_user at normal: -20%}"
    plan = planned(desk, SLOTS.format(before=1, after=4), gain, time="150s", accept=TRADE)
    assert "it can see" in desk.run("plan", "-i", "hosts.yml", plan).expect(0).out
    step = trial(desk, plan, 0)

    assert (step["outcome"], step["verdict"]) == ("kept", "improved")
    assert phases(step).startswith("ABBA")
    assert all(phase["fresh_start"] for phase in step["measurements"])
    (cost,) = (row for row in step["rows"] if row["metric"] == "tpot_p50")
    assert cost["change"] > 0.2, "tokens come more slowly, as the plan says it may be"
    assert (cost["limit"], cost["state"]) == ("accept tpot <= 250ms", "clear")
    assert service.get("/props")["total_slots"] == 4
    assert b"--parallel 4" in h1.read_file(service.unit_file)


def test_harm_at_peak_alone_is_seen_in_the_first_pair_named_and_taken_back(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = served(h1, llama_service, 4)
    desk.lay_out([service], levels="{low: 1 stream, peak: 16 streams}")
    before = service.stat(service.unit_file)

    step = trial(desk, planned(desk, SLOTS.format(before=4, after=1), "neutral"), 4)

    assert (step["outcome"], step["verdict"]) == ("reverted", "regressed")
    assert phases(step) == "AB"
    assert {level for _, level in worse(step)} == {"peak"}
    assert ("ttft_user_p50", "peak") in worse(step)
    assert "at peak" in step["text"]
    assert "at low" not in step["text"]
    assert service.stat(service.unit_file) == before
    assert service.get("/props")["total_slots"] == 4


def test_harm_in_the_tail_alone_is_seen_and_taken_back(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = served(h1, llama_service, 4, environment={"LAB_FAULT_TAIL": "0@1500"})
    desk.lay_out([service], levels="{normal: 6 rps}")
    # Long enough to read that a moment in which this machine is busy does not count, and asked so seldom that the
    # engine has room even then.
    desk.ask(*(f"{number} " + "once upon a time " * 16 for number in range(12)), tokens=16)
    before = service.stat(service.env_file)

    step = trial(desk, planned(desk, TAIL, "neutral", time="180s", length="seconds: 12s", accept=ONE_LIMIT), 4)

    assert (step["outcome"], step["verdict"]) == ("reverted", "regressed")
    assert worse(step) == {("ttft_user_p95", "normal")}
    (median,) = (row for row in step["rows"] if row["metric"] == "ttft_user_p50")
    assert (median["limit"], median["state"]) == ("accept ttft_user_p50 <= 800ms", "clear")
    assert service.stat(service.env_file) == before
    assert b"LAB_FAULT_TAIL=0@1500" in h1.read_file(f"/proc/{service.pid()}/environ")
