"""A stage whose engine is vLLM, and whose users send requests: its page counts them, as vLLM's own does."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.workflow.fake_host import ENV_TEXT, UNIT, FakeHost
from tests.workflow.stage import SERVICE, Stage

from changectl.core.history.story import RunStory, run_story
from changectl.workflow.apply import RunEnd, apply

EDGES = (0.1, 0.5, 1.0, 2.0)
UNIT_TEXT = "[Service]\nEnvironmentFile=/etc/chat.env\nExecStart=/opt/vllm serve /srv/m.gguf --port 8080\n"
LIVE_SERVICE = SERVICE.replace("engine: llamacpp", "engine: vllm").replace(
    "limits: {load_on_live: true}", "slo: {failures: <= 2%, ttft_user_p95: <= 500ms}"
)
STEP = '  - change: {environment: {name: OMP_NUM_THREADS, from: "1", to: "2"}}\n    expect: neutral\n'


@dataclass
class Users:
    """What users send to the process that runs: requests a second, which share fails, seconds to the first token."""

    rate: float = 2.0
    failing: float = 0.0
    ttft: float = 0.2
    tokens: int = 50
    counts_probes: bool = False  # whether the page counts changectl's own requests, as a real one does
    changed: dict[str, float] = field(default_factory=dict)  # what is otherwise on the new configuration

    def page(self, host: FakeHost) -> str:
        """vLLM's metrics page."""
        assert host.process is not None
        now = {**self.__dict__, **(self.changed if is_new(host) else {})}
        seconds = max(0.0, host.world.seconds - host.process.started)
        ended = int(now["rate"] * seconds)
        failed = int(ended * now["failing"])
        good = ended - failed + (host.tokens // 2 if self.counts_probes else 0)
        lines = [
            f'vllm:request_success_total{{finished_reason="stop"}} {good}',
            f'vllm:request_success_total{{finished_reason="error"}} {failed}',
            f'vllm:request_success_total{{finished_reason="abort"}} {int(ended * now.get("given_up", 0))}',
            f"vllm:generation_tokens_total {good * now['tokens'] + host.tokens}",
            f"vllm:prompt_tokens_total {good * 100}",
            f"vllm:num_preemptions_total {int(ended * now.get('preempted', 0))}",
        ]
        for name in ("time_to_first_token_seconds", "request_time_per_output_token_seconds",
                     "e2e_request_latency_seconds"):  # fmt: skip
            value = now["ttft"] * {"time_to_first_token_seconds": 1, "e2e_request_latency_seconds": 4}.get(name, 0.1)
            lines += [f'vllm:{name}_bucket{{le="{edge}"}} {good if value <= edge else 0}' for edge in EDGES]
            lines += [f'vllm:{name}_bucket{{le="+Inf"}} {good}', f"vllm:{name}_count {good}"]
            lines.append(f"vllm:{name}_sum {good * value}")
        return "\n".join(lines) + "\n"


def is_new(host: FakeHost) -> bool:
    """Whether the process runs with the changed variable."""
    return host.process is not None and host.process.environ.get("OMP_NUM_THREADS") == "2"


def live_stage(users: Users, service_text: str = LIVE_SERVICE) -> Stage:
    """One host with vLLM and its users."""
    stage = Stage(service_text=service_text)
    host = stage.host
    host.files[UNIT] = UNIT_TEXT.encode()
    host.restart()
    assert host.process is not None
    host.process.started, host.metrics = -3600.0, users.page
    host.requests = 100  # of a load that is sent: enough for a P95
    stage.before = {host.name: host.digests()}
    assert ENV_TEXT in host.files["/etc/chat.env"].decode()
    return stage


def applied(stage: Stage, effort: str, more: str = "") -> RunEnd:
    """Apply a plan of one step."""
    text = f"version: 1\nservice: chat\nreason: a story\neffort: {effort}\nsteps:\n{STEP}{more}"
    return apply(stage.order(text), stage.tools)


def story(stage: Stage) -> RunStory:
    """What the record tells of the run."""
    from dataclasses import replace

    return run_story([replace(event, at="2026-01-01T00:00:00+00:00") for event in stage.journal.lines])
