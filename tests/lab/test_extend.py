"""A trial on a real host that ends without a verdict, and goes on in another run."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300, func_only=True)]

# So little time that three pairs cannot fit into it, and two decide nothing on a host whose noise is not known.
PLAN = """\
version: 1
service: chat
reason: a test of the lab
effort: {time: 36s}
outage: 5m
conditions: {seconds: 5s}
steps:
  - change: {parameter: {name: parallel, from: 4, to: 5}}
    expect: neutral
    accept: {ttft_user: <= 20s, tpot: <= 2s, e2e_user: <= 30s, rps_ok: ">= 1 rps", out_tok_s: ">= 5 tok/s"}
"""


def test_a_trial_without_a_verdict_goes_on_in_another_run(
    desk: Desk, h1: LabHost, llama_service: Callable[..., LlamaService]
) -> None:
    service = llama_service(h1, flags={"--ctx-size": "4096", "--parallel": "4", "--threads": "1"})
    desk.lay_out([service])
    (desk.folder / "trial.yml").write_text(PLAN)
    told = desk.run("apply", "-i", "hosts.yml", "trial.yml", timeout=200).expect(5).out
    first = json.loads(desk.run("history", "--json").out)["runs"][0]
    assert (first["outcome"], first["steps"][0]["verdict"]) == ("reverted", "inconclusive")
    assert f"changectl extend {first['run']}" in told
    before = len(desk.show(first["run"])["steps"][0]["measurements"])

    ended = desk.run("extend", first["run"], "--pairs", "1", "-i", "hosts.yml", "--json", timeout=200)
    assert ended.code in (0, 4, 5), ended.out
    run, step = ended.document["run"], ended.document["steps"][0]
    assert (run["extends"], step["verdict"] is not None) == (first["run"], True)
    assert [phase["number"] for phase in step["measurements"]] == [before + 1, before + 2]
    assert all(phase["fresh_start"] for phase in step["measurements"])
    assert desk.show(first["run"])["run"]["extended_by"] == run["run"]
    (judged,) = desk.run("judge", run["run"], "--json").expect(0).document["verdicts"]
    assert (judged["same"], judged["phases"]) == (True, before + 2)
    assert service.get("/props")["total_slots"] == (5 if ended.code == 0 else 4)

    again = desk.run("extend", first["run"], "--pairs", "1", "-i", "hosts.yml", "--json", timeout=60).expect(3)
    assert again.document["error"]["reason"] == "extended_already"
