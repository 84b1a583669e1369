"""The load of a step and the fingerprint of a phase."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.workflow.fake_host import FakeHost, Process
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text

from changectl.adapters.loadgen.job import Level, parse_job
from changectl.core.errors import Refused
from changectl.core.judging.conditions import Fingerprint, single_difference, unknown
from changectl.workflow.calling import Sent, calling
from changectl.workflow.conditions import LoadPlan, Present, fingerprint, load_plan, model_digest
from changectl.workflow.contact import Contact, make_contact, open_target
from changectl.workflow.tools import Tools

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


def present(found: Contact, tools: Tools, version: str | None = "b1") -> Present:
    target = found.target
    model = model_digest(target.model(None))
    with calling(target, None, tools) as caller:
        sends = caller.conditions(Sent(summary={"source": "192.0.2.7"}))
    return Present(target.hello(), target.host_answer(), target.inspect(), model, version, sends)


@dataclass
class Scene:
    """One instance that was contacted, and what is so there now."""

    stage: Stage = field(default_factory=Stage)

    def __post_init__(self) -> None:
        self.found, self.load = contact(self.stage), plan_for(self.stage)

    @property
    def process(self) -> Process:
        assert self.stage.host.process is not None
        return self.stage.host.process

    def now(self, version: str | None = "b1") -> Fingerprint:
        return fingerprint(
            self.found, present(self.found, self.stage.tools, version), self.load, self.stage.tools.secrets
        )

    def moved(self, before: Fingerprint, version: str | None = "b1") -> list[str]:
        return [one.key for one in single_difference(before, self.now(version), {"parallel"})]


def test_the_same_state_has_the_same_fingerprint() -> None:
    scene = Scene()
    assert scene.now().digest() == scene.now().digest()
    assert unknown(scene.now(), scene.now()) == []


def test_the_declared_change_is_one_difference_and_anything_else_another() -> None:
    scene = Scene()
    before = scene.now()
    scene.process.argv[-1] = "8"
    assert scene.moved(before) == []
    scene.process.environ["LD_PRELOAD"] = "/x.so"
    assert scene.moved(before) == ["environment.LD_PRELOAD"]


def test_a_newer_engine_is_a_difference() -> None:
    scene = Scene()
    assert scene.moved(scene.now(), "b2") == ["engine_version"]


CHANGES: dict[str, Callable[[FakeHost], None]] = {
    "model": lambda host: host.model.update({"m.gguf": (100, "bb")}),
    "kernel": lambda host: setattr(host, "kernel", "6.2"),
    "boot": lambda host: setattr(host, "boot", "c"),
    "user": lambda host: host.facts.update(uid=0),
    "program": lambda host: host.facts.update(program=[10, 9, 9]),
    "limits": lambda host: host.facts.update(limits={"Max open files": ["64", "64"]}),
    "caller": lambda host: setattr(host, "name", "other"),
    "port_held_by_the_service": lambda host: host.facts.update(tree=[], pid=1),
}


@pytest.mark.parametrize("fact", CHANGES)
def test_everything_is_read_anew_so_that_what_moved_is_seen(fact: str) -> None:
    scene = Scene()
    before = scene.now()
    CHANGES[fact](scene.stage.host)
    assert fact in scene.moved(before)


@pytest.mark.parametrize("fact", ["argv", "environ", "uid", "program", "exe", "venv", "limits"])
def test_what_cannot_be_read_is_named_and_not_taken_to_be_equal(fact: str) -> None:
    scene = Scene()
    scene.stage.host.facts[fact] = None
    named = {"argv": "settings", "environ": "environment", "uid": "user", "exe": "program", "venv": "program"}.get(
        fact, fact
    )
    assert named in unknown(scene.now(), scene.now())


def test_a_model_file_without_digest_leaves_the_model_unknown() -> None:
    scene = Scene()
    model = scene.found.model
    unread = model.model_copy(update={"files": [model.files[0].model_copy(update={"sha256": None})]})
    assert model_digest(unread) is None
    assert model_digest(model.model_copy(update={"files": []})) is None


def test_another_flag_with_the_same_value_is_not_taken_for_the_changed_one() -> None:
    scene = Scene()
    scene.process.argv = ["/opt/llama-server", "--keep", "4", "--parallel", "4"]
    before = scene.now()
    scene.process.argv = ["/opt/llama-server", "--keep", "4", "--parallel", "2"]
    assert scene.moved(before) == []
    scene.process.argv = ["/opt/llama-server", "--keep", "2", "--parallel", "2"]
    assert scene.moved(before) == ["argument 2"]


def test_the_same_program_by_another_name_is_no_difference_and_another_file_behind_the_name_is_one() -> None:
    scene = Scene()
    before = scene.now()
    scene.process.argv[0] = "llama-server"
    assert scene.moved(before) == []
    scene.stage.host.facts["venv"] = "/srv/venv"
    assert scene.moved(before) == ["argument 0", "program"]


def test_a_secret_word_of_the_command_is_kept_as_a_digest() -> None:
    scene = Scene()
    scene.process.argv += ["--api-key", "odd-but-secret", "--chat-template", "plain"]
    command = scene.now().to_json()["command"]
    assert "odd-but-secret" not in str(command)
    assert command[-2:] == ["--chat-template", "plain"]


def test_what_systemd_makes_anew_for_every_start_is_no_difference() -> None:
    scene = Scene()
    before = scene.now()
    scene.process.environ["INVOCATION_ID"] = "1"
    assert scene.moved(before) == []


def test_values_of_variables_are_kept_as_digests() -> None:
    scene = Scene()
    scene.process.environ["ODD_NAME"] = "a-value-nobody-may-see"
    assert "a-value-nobody-may-see" not in str(scene.now().to_json())


def test_the_warm_up_reaches_every_stream_twice() -> None:
    stage = Stage(service_text=SERVICE.replace("8 streams", "32 streams"))
    target = open_target(stage.placed[0], stage.tools)
    assert plan_for(stage).job(target, "s")["warmup"] == {"requests": 64, "streams": 32}
    few = Stage(service_text=SERVICE.replace("8 streams", "1 stream"))
    assert plan_for(few).job(target, "s")["warmup"] == {"requests": 8, "streams": 1}


def at_levels(levels: str, extra: str = "") -> LoadPlan:
    return plan_for(Stage(service_text=SERVICE.replace("{normal: 8 streams}", levels)), extra)


def job_of(load: LoadPlan) -> dict[str, Any]:
    stage = Stage()
    return load.job(open_target(stage.placed[0], stage.tools), "s")


def test_an_open_level_is_told_in_requests_and_time() -> None:
    load = at_levels("{normal: 8 streams, peak: 6 rps}", "conditions: {seconds: 30s}\n")

    assert job_of(load)["levels"] == [
        {"name": "normal", "streams": 8, "seconds": 30.0},
        {"name": "peak", "arrivals": "poisson", "requests": 180, "seconds": 30.0},
    ]
    job = {**job_of(load), "workload": [{"id": "p", "prompt": "once", "max_tokens": 1}]}
    assert parse_job(json.dumps(job)).levels[2] == Level("peak", None, 30.0, 180)
    assert load.facts()["levels"] == {"normal": "8 streams", "peak": "6 rps"}


@pytest.mark.parametrize(
    ("levels", "extra", "expected"),
    [
        ("{peak: 6 rps}", "", 20.0),
        ("{peak: 6 rps, more: 3 rps}", "conditions: {requests: 60}\n", 10.0 + 20.0),
        ("{low: 1 stream, peak: 6 rps}", "conditions: {seconds: 30s}\n", 60.0),
        ("{low: 1 stream, peak: 6 rps}", "conditions: {requests: 60}\n", None),
    ],
)
def test_how_long_a_phase_takes_is_known_where_no_closed_level_counts_requests(
    levels: str, extra: str, expected: float | None
) -> None:
    assert at_levels(levels, extra).expected_seconds == expected


def test_a_long_open_level_of_requests_is_not_given_up_before_its_end() -> None:
    load = at_levels("{night: 0.1 rps}", "conditions: {requests: 60}\n")

    assert load.timeout > 600 + 120


@pytest.mark.parametrize(
    ("levels", "streams"),
    [("{night: 0.5 rps}", 1), ("{peak: 6 rps}", 6), ("{peak: 200 rps}", 8), ("{peak: 200 rps, wide: 12 streams}", 12)],
)
def test_an_open_level_is_warmed_up_by_as_many_as_come_in_a_second_within_bounds(levels: str, streams: int) -> None:
    warmup = job_of(at_levels(levels))["warmup"]

    assert warmup == {"streams": streams, "requests": max(8, 2 * streams)}
