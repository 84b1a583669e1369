"""Changes that are not kept: the saved configuration is back, byte for byte, and the record says why."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Thread

import pytest
from tests.lab.desk import FAR_LIMITS, Desk, Ended, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
#: With a slot for each, nobody waits; with one slot for all, they stand in a queue.
CROWD = "{busy: 16 streams}"
CROWDED = 48  # requests: three for each stream
TO_ONE_SLOT = "{environment: {name: LLAMA_ARG_N_PARALLEL, from: 16, to: 1}}"

#: A whole number, as the setting asks for, and more than the engine's own numbers hold.
TOO_MUCH = "{parameter: {name: predict, from: absent, to: 3000000000}}"


def crowded_service(llama_service: ServiceMaker, host: LabHost) -> LlamaService:
    return llama_service(
        host, flags={"--ctx-size": "8192", "--threads": "1"}, environment={"LLAMA_ARG_N_PARALLEL": "16"}, size="medium"
    )


def reason(ended: Ended) -> str:
    found: str = ended.document["reason"]
    return found


def test_a_change_that_makes_users_wait_is_restored_with_everything_the_file_carried(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = crowded_service(llama_service, h1)
    desk.lay_out([service], levels=CROWD)
    before, model = service.stat(service.env_file), service.stat(service.model)

    ended = desk.measured(desk.plan(TO_ONE_SLOT, requests=CROWDED), 4)

    assert reason(ended) == "regressed"
    assert service.stat(service.env_file) == before
    assert service.stat(service.model) == model
    assert h1.run(["readlink", service.env_file]).stdout == f"{service.env_target}\n"
    assert h1.run(["find", "/srv/llm/config", "/etc/llama", "-mindepth", "1"]).stdout.split() == [
        service.env_target,
        service.env_file,
    ]
    assert service.get("/props")["total_slots"] == 16
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert (step["outcome"], step["verdict"]) == ("reverted", "regressed")
    breached = {row["metric"] for row in step["rows"] if row["state"] == "breach"}
    assert "ttft_user_p50" in breached
    assert [proof["verified"] for proof in step["verify"]] == [True]
    assert step["outage_seconds"] > 0


def test_a_value_that_the_engine_refuses_is_restored_and_its_own_words_are_recorded(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = service.stat(service.unit_file)

    ended = desk.measured(desk.plan(TOO_MUCH), 4)

    assert reason(ended) == "did_not_start"
    assert service.stat(service.unit_file) == before
    assert service.complete(tokens=4)
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    failed = step["ready"][0]
    assert failed["ok"] is False
    assert failed["line"].strip() == 'error while handling argument "--predict": stoi'
    assert failed["line"].strip() in step["text"]
    assert failed["seconds"] < 15


def test_a_variable_that_a_flag_overrides_is_applied_found_without_effect_and_restored(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, environment={"LLAMA_ARG_N_PARALLEL": "2"})
    desk.lay_out([service])
    before = service.stat(service.env_file)

    ended = desk.measured(desk.plan("{environment: {name: LLAMA_ARG_N_PARALLEL, from: 2, to: 3}}"), 4)

    assert reason(ended) == "not_effective"
    assert service.stat(service.env_file) == before
    assert service.get("/props")["total_slots"] == 4


def test_a_setting_that_the_engine_caps_is_found_without_effect(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1, flags={"--ctx-size": "8192", "--parallel": "1", "--threads": "1"})
    desk.lay_out([service], levels="{normal: 1 stream}")

    ended = desk.measured(desk.plan("{parameter: {name: ctx-size, from: 8192, to: 65536}}"), 4)

    assert reason(ended) == "not_effective"
    assert "--ctx-size 8192" in h1.read_file(service.unit_file).decode()


def test_a_plan_ends_with_its_first_step_that_is_not_kept(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    plan = desk.plan(TOO_MUCH, "{parameter: {name: parallel, from: 4, to: 6}}")

    ended = desk.measured(plan, 4)

    steps = desk.show(ended.document["run"]["run"])["steps"]
    assert [step["outcome"] for step in steps] == ["reverted", "not_started"]
    assert service.get("/props")["total_slots"] == 4


def test_answers_that_the_new_configuration_cuts_short_are_no_evidence_and_the_change_goes(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    desk.ask("A long story begins", "Another long story begins", tokens=400)
    before = service.stat(service.unit_file)

    # Sixteen slots share the context, and none has room for such answers: shorter ones prove nothing about a limit.
    ended = desk.measured(desk.plan("{parameter: {name: parallel, from: 4, to: 16}}", more=FAR_LIMITS), 5)

    assert reason(ended) in ("inconclusive", "invalid")  # invalid: this machine also kept the load generator waiting
    assert service.stat(service.unit_file) == before
    assert service.get("/props")["total_slots"] == 4
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert (step["outcome"], [proof["verified"] for proof in step["verify"]]) == ("reverted", [True])
    assert "times the output tokens" in str(step)


def test_a_model_that_is_damaged_meanwhile_needs_a_person(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = crowded_service(llama_service, h1)
    desk.lay_out([service], levels=CROWD)
    before, first = service.stat(service.env_file), service.pid()

    def damage_the_model_once_the_new_configuration_serves() -> None:
        wait_for(lambda: service.pid() not in (0, first), "the new configuration was never started")
        service.wait_ready()
        # Beside it and moved over it: the running engine keeps the whole file open, only the next start meets this one.
        script = 'cp -p "$1" "$1.new" && truncate -s 100000 "$1.new" && mv "$1.new" "$1"'
        h1.run(["sh", "-c", script, "sh", service.model])

    vandal = Thread(target=damage_the_model_once_the_new_configuration_serves)
    vandal.start()
    ended = desk.measured(desk.plan(TO_ONE_SLOT, requests=CROWDED), 6)
    vandal.join()

    assert ended.document["run"]["outcome"] == "revert_unverified"
    text = ended.document["steps"][0]["text"]
    assert "model file chat.gguf is not the one before the change" in text
    assert "does not answer" in text
    assert service.stat(service.env_file) == before


def test_ctrl_c_while_the_new_configuration_is_measured_restores_the_saved_one(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before, first = service.stat(service.unit_file), service.pid()
    plan = desk.plan("{parameter: {name: parallel, from: 4, to: 6}}", requests=800)

    with desk.start("apply", "-i", "hosts.yml", "--json", plan) as process:
        wait_for(lambda: service.pid() not in (0, first), "the new configuration was never started", timeout=90)
        service.wait_ready()
        wait_for(lambda: "requests_processing 4" in service.text("/metrics"), "the new configuration is not measured")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    ended = Ended(process.returncode, out, err).expect(130)
    assert reason(ended) == "interrupted"
    assert service.stat(service.unit_file) == before
    assert service.get("/props")["total_slots"] == 4
    step = desk.show(ended.document["run"]["run"])["steps"][0]
    assert [proof["verified"] for proof in step["verify"]] == [True]
    assert desk.run("status").expect(0)
