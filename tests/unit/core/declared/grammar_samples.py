"""Good plans and services, and helpers that read broken ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from changectl import kinds
from changectl.core.declared import plan, service
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.errors import InputError, Problem

PLAN = """\
version: 1
service: chat
reason: OPS-1234 GPU idle while 12 requests wait
ticket: OPS-1234
effort: quick
outage: 30m
conditions: {levels: {normal: 8 streams, peak: 16 streams}, seconds: 20s, seed: 7}
steps:
  - change: {parameter: {name: max-num-seqs, from: absent, to: 128}}
    expect: {rps_ok at peak: +10%}
    accept: {tpot_p95: <= 45ms}
    checks: [checks/answers.py]
  - change:
      environment: {name: OMP_NUM_THREADS, from: "1", to: "2"}
    expect: neutral
    on_inconclusive: keep
"""

SERVICE = """\
version: 1
service: chat
class: interactive
instances: {group: gpu, each: {endpoint: "http://{{ ansible_host }}:8000"}}
engine: vllm
manager: {systemd: {unit: vllm.service}}
config:
  - {unit: vllm.service, format: flags}
  - {file: /etc/vllm/chat.yaml, format: yaml}
  - {file: /opt/chat/docker-compose.yml, format: yaml, at: services.vllm.command, then: flags}
  - {file: /opt/chat/start.sh, format: pattern, match: '--max-num-seqs (?P<value>\\d+)'}
model: {path: /srv/models/chat, name: chat}
auth: {bearer: "{{ vault_chat_key }}"}
slo: {ttft_user_p95: <= 800ms, tpot_p95: <= 45ms, failures: <= 1%}
conditions: {workload: workloads/chat.jsonl, levels: {low: 1 stream, normal: 8 streams}}
limits: {max_out: 45m, load_on_live: false}
"""

COMMAND_SERVICE = """\
version: 1
service: local
class: offline
instances:
  - {host: box, endpoint: "http://127.0.0.1:8080"}
engine:
  generic:
    ready: GET /healthz 200
    answer: {protocol: openai_completions}
    settings: {concurrency_limit: {flag: --workers}}
    metrics: {page: /metrics, waiting: app_queue_depth, running: app_in_flight}
manager:
  command:
    start: "./run-chat start --port {{ port + 1 }} 'two words'"
    stop: ./run-chat stop
    cwd: /srv/chat
    pid: {file: /run/chat.pid}
config:
  - {file: start.env, format: env}
model: {path: model.gguf}
conditions: {workload: chat.jsonl, levels: {only: 2 streams}}
"""


def read_plan(
    text: str, levels: Iterable[str] | None = ("low", "normal"), lacking: Mapping[str, str] | None = None
) -> Plan:
    return plan.load(text, "plan.yml", kinds=kinds.specs(), levels=levels, lacking=lacking)


def read_service(text: str) -> Service:
    return service.load(text, "chat.yml", engines=("generic", "llamacpp", "vllm"))


def plan_problems(text: str, lacking: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        read_plan(text, lacking=lacking)
    return caught.value.problems


def service_problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        read_service(text)
    return caught.value.problems


def changed(text: str, old: str, new: str) -> str:
    """The text with one part, which stands in it once, written differently."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    return text.replace(old, new)


def only(problems: tuple[Problem, ...]) -> tuple[str, str, str, str]:
    """The one problem there is, as place, path, message and hint."""
    (problem,) = problems
    return f"{problem.file}:{problem.line}:{problem.column}", problem.path, problem.message, problem.hint
