"""The example of design.md's section 6 runs: a service of two instances behind nginx, called from a gateway.

Service and plan are the page's, key for key, with llama.cpp in vLLM's place. What is not as it stands there:

- `engine: llamacpp`, and with it names and paths: the unit is llama-chat.service, the files lie in /etc/llama, the
  model is one file, and the parameter is `parallel`. Its size is one for this engine: 8 and not 128.
- One host is `lb1` and `gateway-1`; the lab has no more of them.
- The plan says `effort: quick` and `conditions: {requests: 75}`, which is what makes it short. So its expected gain is
  "not judged", as the page says of quick ones that a plan itself names.
- Limits of time are ten times as wide, and `accept` has more of them than that on tpot: this machine has two cores,
  runs other tests meanwhile, and is not what is judged here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.balancer import Nginx, clients
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import connection_variables
from tests.lab.harness.services import LlamaService
from tests.lab.vault_desk import VAULT, encrypted_variables

pytestmark = [pytest.mark.lab, pytest.mark.timeout(700, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

SERVICE = """\
# services/chat.yml
version: 1
service: chat
class: interactive                        # or offline: sets default guards (D4)
instances: {group: gpu, each: {endpoint: "http://{{ ansible_host }}:8000"}}
engine: llamacpp
manager: {systemd: {unit: llama-chat.service}}
config:                                   # strongest first, as the engine reads them
  - {unit: llama-chat.service, format: flags}
  - {file: /etc/llama/chat.yaml, format: yaml}
model: {path: /srv/models/chat.gguf, name: chat}
auth: {bearer: "{{ vault_chat_key }}"}
traffic: {nginx: {host: lb1, file: /etc/nginx/conf.d/chat.conf, upstream: chat, member: "{{ ansible_host }}:8000"}}
caller: gateway-1                         # where the load comes from (B7); default: the instance's own host
slo: {ttft_user_p95: <= 8s, tpot_p95: <= 450ms, failures: <= 1%}
conditions: {workload: workloads/chat.jsonl, levels: {low: 1 stream, normal: 8 streams, peak: 6 rps}}
limits: {max_out: 45m, load_on_live: false}
"""
PLAN = """\
# changeplans/more-sequences.yml
version: 1
service: chat
reason: OPS-1234 GPU idle 40 % while 12 requests wait at peak
effort: quick
conditions: {requests: 75}
steps:
  - change: {parameter: {name: parallel, from: absent, to: 8}}
    expect: {rps_ok at peak: +10%}        # or expect: neutral
    accept: {tpot_p95: <= 450ms, e2e_user: <= 60s, rps_ok: ">= 0.1 rps", out_tok_s: ">= 1 tok/s"}  # a trade, declared
    on_inconclusive: revert               # ask on a terminal; keep only with expect: neutral
"""
KEY = "lab-chat-4f07b2"
YAML = "/etc/llama/chat.yaml"


@pytest.fixture
def pair(h1: LabHost, h2: LabHost, llama_service: ServiceMaker) -> Iterator[list[LlamaService]]:
    """Two instances that demand a key, each with a file of settings that is weaker than its flags."""
    for host in (h1, h2):
        host.write_file(YAML, "# Weaker than flags.\nctx-size: 8192\nthreads: 1\nkv-unified: on\n", mode="0644")
    yield [llama_service(host, flags={"--config": YAML}, environment={"LLAMA_API_KEY": KEY}) for host in (h1, h2)]
    for host in (h1, h2):
        host.run(["rm", "-f", YAML])


@pytest.fixture
def nginx(c1: LabHost, pair: list[LlamaService]) -> Iterator[Nginx]:
    """The balancer in front of both."""
    made = Nginx(c1, [f"{one.host.address}:8000" for one in pair])
    made.install()
    yield made
    made.uninstall()


@pytest.fixture
def written(desk: Desk, pair: list[LlamaService], nginx: Nginx) -> Desk:
    """The project folder, with the key in a vault."""
    gpu = {f"gpu-{number}": {"ansible_host": one.host.address} for number, one in enumerate(pair, 1)}
    others = {name: {"ansible_host": nginx.host.address} for name in ("lb1", "gateway-1")}
    inventory = {
        "all": {"vars": connection_variables(nginx.host), "children": {"gpu": {"hosts": gpu}}, "hosts": others}
    }
    texts = {
        "hosts.yml": json.dumps(inventory),
        "services/chat.yml": SERVICE,
        "changeplans/more-sequences.yml": PLAN,
    }
    for name, text in texts.items():
        (desk.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.folder / name).write_text(text)
    (desk.folder / "workloads").mkdir()
    # Long enough to read that a moment in which this machine is busy does not count.
    desk.ask(*(f"{number} " + "once upon a time " * 24 for number in range(12)), tokens=16)
    desk.home.mkdir(parents=True, exist_ok=True)
    encrypted_variables(desk, {"vault_chat_key": KEY})
    return desk


def test_the_designs_example_is_rolled_out_judged_and_kept_while_no_live_request_is_lost(
    written: Desk, pair: list[LlamaService], nginx: Nginx
) -> None:
    before = nginx.stat()

    with clients(nginx.url, bearer=KEY) as counted:
        ended = written.measured("changeplans/more-sequences.yml", 0, tries=2, timeout=320, words=VAULT)

    assert counted.good > 20
    assert counted.lost == []
    (step,) = ended.document["steps"]
    assert (step["outcome"], step["instances"]) == ("kept", {"gpu-1": "kept", "gpu-2": "kept"})
    assert [(one["host"], one["code"]) for one in step["reasons"]] == [
        ("gpu-1", "no_gross_harm"), ("gpu-2", "no_gross_harm"),
    ]  # fmt: skip
    assert [(phase["host"], phase["phase"]) for phase in step["measurements"]] == [
        ("gpu-1", "A"), ("gpu-1", "B"), ("gpu-2", "A"), ("gpu-2", "B"),
    ]  # fmt: skip
    gains = [row for row in step["rows"] if row["limit"] == "expected +10%"]
    assert {(row["metric"], row["level"], row["state"]) for row in gains} == {("rps_ok", "peak", "not judged")}
    assert called_from(step) == {f"gateway-1 {nginx.host.address}"}
    for one in pair:
        assert one.argv()[-2:] == ["--parallel", "8"]
    assert nginx.stat() == before
    assert KEY not in ended.out + ended.err


def called_from(step: dict[str, Any]) -> set[str]:
    conditions = [phase["conditions"] for phase in step["measurements"]]
    return {f"{one['caller'].split()[0]} {one['caller_address']}" for one in conditions}
