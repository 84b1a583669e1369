"""Every pre-check: one situation in which it passes, those in which it refuses, those in which its data is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.engines.support import llamacpp_pages, text
from tests.unit.probes.situations import (
    ENGINE,
    GIB,
    STARTED,
    UNIT,
    file,
    gpus,
    host,
    model,
    observed,
    page,
    situation,
    status,
)

from changectl import engines, managers, probes
from changectl.core.caller import CallerSeen
from changectl.core.declared.live_load import LiveLoad
from changectl.core.engine import Page
from changectl.core.errors import InputError
from changectl.core.leaving import Leaving
from changectl.core.observed import Capture, Hello, Help, HostFacts, Nvml, UnitVerify
from changectl.core.precheck import NOT_EXPOSED, CheckState, Seen, Situation, ThreeValues, refuses
from changectl.core.trial.power import Blind, Power
from changectl.core.units import LevelLoad

VLLM = engines.load("vllm")
OWN = "/etc/chat.yaml"  # read by the engine itself
NEWER = int((STARTED + 60) * 1e9)
UNKNOWN = Seen(known=False, why="not read")
SHARE = {"engine": VLLM, "nvml": gpus()}
GPU = {"present": True, "driver": "570.1", "library_version": "570.1"}


def values(file: Seen, process: Seen, engine: Seen) -> tuple[ThreeValues, ...]:
    return (ThreeValues("parallel", file, process, engine, ENGINE.setting("parallel")),)


def restarted() -> Any:
    return observed(process={"pid": 9, "started_at": STARTED, "argv": ["x"], "tree": [9], "listens": []})


def served(count: int, words: int) -> dict[str, Any]:
    """A vLLM whose users send 500 to 1000 tokens and get 100 to 200, and a workload of so many words."""
    lines = []
    for name, edges in (("prompt", ("500.0", "1000.0", "+Inf")), ("generation", ("100.0", "200.0", "+Inf"))):
        series = f"vllm:request_{name}_tokens"
        lines += [f'{series}_bucket{{le="{edge}"}} {0 if edge == edges[0] else count}' for edge in edges]
        lines += [f"{series}_count {count}", f"{series}_sum {count}"]
    entry = {"id": "a", "prompt": "word " * words, "max_tokens": 150}
    return {"engine": VLLM, "pages": {"metrics": page(200, "\n".join(lines))}, "workload": [entry]}


CASES: list[tuple[str, CheckState, dict[str, Any]]] = [
    ("workload_lengths", "passed", served(100, 600)),
    ("workload_lengths", "failed", served(100, 20)),
    ("workload_lengths", "failed", served(100, 6000)),
    ("workload_lengths", "unknown", served(99, 600)),
    ("workload_lengths", "unknown", {**served(100, 600), "pages": {}}),
    ("workload_lengths", "unknown", {**served(100, 600), "pages": {"metrics": page(500)}}),
    ("workload_lengths", "not_applicable", {**served(100, 600), "workload": None}),
    ("workload_lengths", "not_applicable", {"workload": []}),
    ("values_agree", "failed", {"values": values(Seen("2"), Seen("3"), Seen("3"))}),
    ("values_agree", "failed", {"values": values(Seen("2"), Seen("2"), Seen("1"))}),
    ("values_agree", "failed", {"values": values(Seen(None), Seen("2"), UNKNOWN)}),
    ("values_agree", "failed", {"values": (ThreeValues("A", Seen("1"), Seen("2"), UNKNOWN),)}),
    ("values_agree", "passed", {"values": values(Seen("02"), Seen("2"), UNKNOWN)}),
    ("values_agree", "passed", {"values": values(Seen(None), Seen(None), Seen("1"))}),
    ("values_agree", "passed", {"values": values(Seen("2"), UNKNOWN, UNKNOWN)}),
    (
        "values_agree",
        "unknown",
        {"values": values(Seen("2"), UNKNOWN, UNKNOWN), "observed": observed(files={UNIT: file(mtime_ns=NEWER)})},
    ),
    ("values_agree", "unknown", {"values": values(UNKNOWN, Seen("2"), Seen("2"))}),
    ("values_agree", "unknown", {"values": None}),
    ("edited_since_start", "failed", {"observed": observed(files={UNIT: file(mtime_ns=NEWER)})}),
    ("edited_since_start", "unknown", {"observed": observed(process=None)}),
    ("edited_since_start", "unknown", {"observed": observed(files={UNIT: file(mtime_ns=None)})}),
    ("no_pending_reload", "failed", {"observed": observed(manager={"need_daemon_reload": True})}),
    ("no_pending_reload", "unknown", {"observed": observed(manager={"need_daemon_reload": None})}),
    ("no_pending_reload", "unknown", {"observed": None}),
    ("no_pending_reload", "not_applicable", {"manager": managers.load("command")}),
    ("port_owner", "failed", {"observed": observed(port_owner={"pid": 4711})}),
    (
        "port_owner",
        "failed",
        {"observed": observed(port_owner=None, process={"pid": 100, "tree": [100], "listens": [9090]})},
    ),
    ("port_owner", "unknown", {"observed": observed(process=None)}),
    ("port_owner", "unknown", {"endpoint": None}),
    ("healthy_now", "failed", {"status": status(restarts=3)}),
    ("healthy_now", "failed", {"status": status(active="failed")}),
    ("healthy_now", "failed", {"status": status(active="activating")}),
    ("healthy_now", "failed", {"pages": llamacpp_pages(answer=page(500))}),
    ("healthy_now", "failed", {"expected_model": "another"}),
    ("healthy_now", "unknown", {"status": None}),
    ("healthy_now", "unknown", {"pages": None}),
    ("healthy_now", "unknown", {"pages": {"health": page(200)}}),
    ("restorable", "failed", {"capture": Capture(restorable=False, problems=["acl differs"])}),
    ("restorable", "unknown", {"capture": None}),
    ("restorable", "unknown", {"capture": Capture(restorable=True)}),
    ("restorable", "not_applicable", {"capture": None, "preview": True}),
    ("file_writable", "failed", {"observed": observed(files={UNIT: file(immutable=True)})}),
    ("file_writable", "unknown", {"observed": observed(files={})}),
    ("file_writable", "unknown", {"observed": None}),
    ("model_whole", "failed", {"model": model(problems=[{"path": "m.gguf", "problem": "truncated"}])}),
    ("model_whole", "failed", {"model": model(files=[])}),
    ("model_whole", "unknown", {"model": None}),
    ("model_whole", "not_applicable", {"model": None, "model_declared": False}),
    ("model_readable", "failed", {"model": model(readable_by={"uid": 990, "all": False, "not": ["m.gguf"]})}),
    ("model_readable", "unknown", {"model": model(readable_by=None)}),
    ("model_readable", "unknown", {"model": model(readable_by={"uid": None, "all": None, "not": []})}),
    ("model_readable", "unknown", {"model": None}),
    ("model_manifest", "failed", {"model": model(files=[{"path": "m", "size": 1, "mtime_ns": NEWER}])}),
    ("model_manifest", "failed", {"model_kept": model(files=[model().files[0].model_dump() | {"sha256": "bb"}])}),
    ("model_manifest", "passed", {"model_kept": model()}),
    ("model_manifest", "unknown", {"model": None}),
    ("model_manifest", "unknown", {"model": model(files=[{"path": "m", "size": 1}])}),
    ("model_manifest", "unknown", {"observed": observed(process=None)}),
    ("disk_space", "failed", {"host": host(disks={"/var/lib/changectl": {"free": 1000}})}),
    ("disk_space", "failed", {"bytes_needed": 20 * GIB}),
    (
        "disk_space",
        "failed",
        {"host": host(disks={"/var/lib/changectl": {"free": 10 * GIB}, UNIT: {"free": GIB, "read_only": True}})},
    ),
    ("disk_space", "failed", {"host": host(disks={"/var/lib/changectl": {"free": 10 * GIB}, UNIT: {"free": 9}})}),
    ("disk_space", "unknown", {"host": host(disks={UNIT: {"free": GIB}})}),
    ("disk_space", "unknown", {"host": host(disks={"/var/lib/changectl": {"free": 10 * GIB}})}),
    ("disk_space", "unknown", {"host": None}),
    ("host_memory", "failed", {"settings_after": {"ctx-size": "900000000"}}),
    ("host_memory", "unknown", {"settings_after": {"ctx-size": "1024"}, "host": host(memory=None)}),
    ("host_memory", "unknown", {"settings_after": {"ctx-size": "1024"}, "nvml": None, "host": host(gpu=None)}),
    ("host_memory", "unknown", {"engine": None}),
    ("host_memory", "passed", {"settings_after": {"ctx-size": "1024"}}),
    ("host_memory", "passed", {"settings_after": {"ctx-size": "900000000"}, "nvml": gpus()}),
    ("host_memory", "not_applicable", {"model": None}),
    ("host_memory", "not_applicable", {"settings_after": None}),
    ("gpu_memory", "not_applicable", {}),
    ("gpu_memory", "not_applicable", {"nvml": None}),
    ("gpu_memory", "not_applicable", {"nvml": gpus(), "model": None}),
    ("gpu_memory", "unknown", {"nvml": None, "host": None}),
    ("gpu_memory", "unknown", {"nvml": Nvml.read({"none": "NVML does not answer"}), "host": host(gpu=GPU)}),
    ("gpu_memory", "failed", {"nvml": gpus(free=GIB), "settings_after": {"ctx-size": "900000000"}}),
    ("gpu_memory", "passed", {"nvml": gpus(), "settings_after": {"ctx-size": "1024"}}),
    ("gpu_memory", "unknown", {"nvml": Nvml.read({"gpus": [{"index": 0}]}), "settings_after": {"ctx-size": "1024"}}),
    (
        "gpu_memory",
        "passed",
        SHARE
        | {"settings_before": {"gpu-memory-utilization": "0.8"}, "settings_after": {"gpu-memory-utilization": "0.9"}},
    ),
    (
        "gpu_memory",
        "failed",
        SHARE
        | {"settings_before": {"gpu-memory-utilization": "0.5"}, "settings_after": {"gpu-memory-utilization": "0.9"}},
    ),
    (
        "gpu_memory",
        "passed",
        SHARE
        | {"settings_before": {"gpu-memory-utilization": "0.9"}, "settings_after": {"gpu-memory-utilization": "0.5"}},
    ),
    ("gpu_memory", "unknown", SHARE | {"settings_before": {}, "settings_after": {"gpu-memory-utilization": "0.5"}}),
    ("driver_library", "not_applicable", {}),
    ("driver_library", "failed", {"host": host(gpu=GPU | {"library_version": "575.2"})}),
    (
        "driver_library",
        "failed",
        {"nvml": Nvml.read({"none": "NVML does not answer: Driver/library version mismatch"})},
    ),
    ("driver_library", "passed", {"host": host(gpu=GPU)}),
    ("driver_library", "passed", {"host": host(gpu=GPU | {"library_version": None}), "nvml": gpus()}),
    ("driver_library", "unknown", {"host": host(gpu=GPU | {"library_version": None})}),
    ("driver_library", "unknown", {"host": host(gpu=None)}),
    ("driver_library", "unknown", {"host": None}),
    ("value_known", "failed", {"setting": ENGINE.setting("--mmap"), "to": "true"}),
    ("value_known", "failed", {"to": "many"}),
    ("value_known", "failed", {"setting": ENGINE.setting("cache-type-k"), "to": "q3"}),
    ("value_known", "unknown", {"help": None}),
    ("value_known", "unknown", {"help": Help(text="bash: no such file")}),
    ("value_known", "unknown", {"engine": None}),
    ("value_known", "passed", {"to": None}),
    ("value_known", "not_applicable", {"setting": None}),
    (
        "value_known",
        "not_applicable",
        {
            "engine": VLLM,
            "setting": VLLM.setting("VLLM_CPU_KVCACHE_SPACE"),
            "to": "1",
            "help": Help(text=text("vllm", "help.txt")),
        },
    ),
    ("cross_rules", "failed", {"settings_after": {"batch-size": "256", "ubatch-size": "512"}}),
    (
        "cross_rules",
        "passed",
        {
            "settings_before": {"batch-size": "1", "ubatch-size": "2"},
            "settings_after": {"batch-size": "1", "ubatch-size": "2"},
        },
    ),
    ("cross_rules", "unknown", {"settings_after": None}),
    ("named_by_service", "failed", {"setting": ENGINE.setting("port"), "to": "9000"}),
    ("named_by_service", "unknown", {"setting": ENGINE.setting("port"), "to": None}),
    ("named_by_service", "unknown", {"endpoint": None}),
    (
        "unit_verifies",
        "failed",
        {"unit_verify": UnitVerify(before=["old"], after=["old", "Unknown key name 'Restrat'"])},
    ),
    ("unit_verifies", "failed", {"unit_verify": UnitVerify(before=["old"], after=["old", "old"])}),
    ("unit_verifies", "unknown", {"unit_verify": None}),
    ("unit_verifies", "not_applicable", {"unit_verify": None, "edited_files": ("/etc/chat.env",)}),
    ("unit_verifies", "not_applicable", {"manager": managers.load("command")}),
    ("start_limit", "failed", {"observed": observed(show={"StartLimitBurst": "2"})}),
    ("start_limit", "unknown", {"observed": observed(manager={"show": None})}),
    ("start_limit", "unknown", {"starts_needed": None}),
    ("stop_grace", "failed", {"engine": VLLM, "setting": VLLM.setting("shutdown-timeout"), "to": "120"}),
    ("stop_grace", "unknown", {"observed": observed(manager={"show": None})}),
    ("stop_grace", "unknown", {"observed": observed(process=None)}),
    (
        "stop_grace",
        "passed",
        {
            "observed": observed(show={"TimeoutStopUSec": "infinity"}),
            "engine": VLLM,
            "setting": VLLM.setting("shutdown-timeout"),
            "to": "120",
        },
    ),
    ("pod_or_container", "failed", {"hello": Hello(python="3.11.2", kubernetes=True)}),
    ("pod_or_container", "unknown", {"hello": Hello(python="3.11.2")}),
    ("pod_or_container", "unknown", {"hello": None}),
    ("pod_or_container", "passed", {"hello": Hello(python="3.11.2", kubernetes=False, container="lxc")}),
    ("host_python", "failed", {"hello": Hello(python="3.7.3")}),
    ("host_python", "unknown", {"hello": Hello(python="?")}),
    ("host_python", "unknown", {"hello": None}),
    ("owner_managed", "failed", {"observed": observed(files={UNIT: file("# Ansible managed\n[Service]\n")})}),
    ("owner_managed", "unknown", {"observed": observed(files={UNIT: file(content=None)})}),
    ("owner_managed", "unknown", {"edited_files": ()}),
    ("limits_present", "failed", {}),
    ("limits_present", "unknown", {"settings_before": None}),
    (
        "limits_present",
        "passed",
        {"settings_before": {"parallel": "2", "ctx-size": "512", "batch-size": "1", "timeout": "9"}},
    ),
    ("quality_prompts", "failed", {"setting": ENGINE.setting("cache-type-k"), "quality_prompts": 11}),
    ("quality_prompts", "failed", {"setting": ENGINE.setting("cache-type-k"), "quality_prompts": 93}),
    ("quality_prompts", "passed", {"setting": ENGINE.setting("cache-type-k"), "quality_prompts": 94}),
    ("quality_prompts", "unknown", {"setting": ENGINE.setting("cache-type-k"), "quality_prompts": None}),
    ("quality_prompts", "not_applicable", {"setting": ENGINE.setting("parallel"), "quality_prompts": 0}),
    ("quality_prompts", "not_applicable", {"setting": None, "quality_prompts": 0}),
    ("out_of_service", "failed", {"leaving": Leaving("nginx on lb1", "it is the last one", "last_member")}),
    ("out_of_service", "unknown", {"leaving": None}),
    ("live_load", "failed", {"live": LiveLoad("", {"low": LevelLoad(streams=1)}, 60, 9, 9, 3)}),
    ("live_load", "unknown", {"live": None}),
    ("decidable", "failed", {"power": Power(4, (Blind("a margin of 5%", certain=True, enough=6),))}),
    ("decidable", "unknown", {"power": None}),
    ("caller", "failed", {"caller": CallerSeen("c1", trouble="no route to host")}),
    ("caller", "unknown", {"caller": CallerSeen("c1")}),
    ("caller", "unknown", {"caller": None}),
    ("safeguards", "failed", {"observed": observed(show={"Restart": "no"})}),
    ("safeguards", "unknown", {"observed": observed(manager={"show": None})}),
    ("safeguards", "unknown", {"manager": None}),
]
# What a healthy service without a GPU answers where it is not "passed".
OTHERWISE: dict[str, CheckState] = {
    "caller": "not_applicable",
    "live_load": "not_applicable",
    "out_of_service": "not_applicable",
    "gpu_memory": "not_applicable",
    "driver_library": "not_applicable",
    "named_by_service": "not_applicable",
    "limits_present": "failed",
    "quality_prompts": "not_applicable",
    "workload_lengths": "not_applicable",
}


@pytest.mark.parametrize(
    ("name", "state", "changed"), CASES, ids=[f"{name}-{state}-{i}" for i, (name, state, _) in enumerate(CASES)]
)
def test_the_check_answers(name: str, state: CheckState, changed: dict[str, Any]) -> None:
    result = probes.load(name).run(situation(**changed))

    assert (result.state, result.name) == (state, name)
    assert result.detail


@pytest.mark.parametrize("name", probes.names())
def test_a_healthy_service_is_not_refused(name: str) -> None:
    result = probes.load(name).run(situation())

    assert result.state == OTHERWISE.get(name, "passed")
    assert not result.refuses


@pytest.mark.parametrize("name", probes.names())
def test_every_check_is_shown_failing_and_lacking_data(name: str) -> None:
    states = {state for case, state, _ in CASES if case == name}

    assert {"failed", "unknown"} <= states


@pytest.mark.parametrize("name", probes.names())
def test_knowing_nothing_is_never_a_pass(name: str) -> None:
    result = probes.load(name).run(Situation())

    assert result.state == "unknown" or (name == "value_known" and result.state == "not_applicable")


def test_unknown_refuses_where_required_and_not_where_advice() -> None:
    results = probes.run_all(Situation())
    refused = {result.name for result in refuses(results)}

    assert len(results) == len(probes.names())
    assert "restorable" in refused
    assert "owner_managed" not in refused


def test_all_checks_run_in_their_order_whatever_fails() -> None:
    orders = [precheck.order for precheck in probes.all_checks()]

    assert orders == sorted(orders)
    assert len(set(orders)) == len(orders)
    assert [result.name for result in probes.run_all(situation())] == [one.check.name for one in probes.all_checks()]


@pytest.mark.parametrize("state", [{"active": "failed"}, {"active": "active"}])
def test_a_service_that_does_not_answer_is_told_with_its_restarts(state: dict[str, str]) -> None:
    crashed = status(restarts=3, **state)
    seen = situation(status=crashed, status_earlier=crashed, pages=llamacpp_pages(answer=page(500)))
    (found,) = (result for result in probes.run_all(seen) if result.name == "healthy_now")

    assert (found.state, "3 restarts so far" in found.detail) == ("failed", True)


DOWN = {"observed": observed(process=None), "status": status(active="failed", process=None), "help": None}


def test_of_a_service_that_is_down_one_reason_is_told_and_nothing_else_passes_for_it() -> None:
    results = {result.name: result for result in probes.run_all(situation(values=None, settings_after=None, **DOWN))}
    unseen = {name for name, result in results.items() if result.because}

    assert results["healthy_now"].state == "failed"
    assert unseen >= {"values_agree", "port_owner", "value_known", "cross_rules", "stop_grace", "model_manifest"}
    for name in unseen:
        assert (results[name].state, results[name].because) == ("unknown", "healthy_now")
        assert results[name].detail == "not checked, because the service does not run"
    assert {result.name for result in refuses(results.values())} == {
        "healthy_now", *(name for name in unseen if results[name].level == "required")
    }  # fmt: skip


def test_what_is_unknown_for_a_reason_of_its_own_keeps_that_although_the_service_is_down() -> None:
    results = {result.name: result for result in probes.run_all(situation(host=None, **DOWN))}

    assert results["disk_space"].state == "unknown"
    assert (results["disk_space"].because, results["disk_space"].detail == "") == ("", False)


def test_while_the_process_runs_nothing_is_explained_away() -> None:
    results = probes.run_all(situation(pages=llamacpp_pages(answer=page(500)), help=None))

    assert {result.name for result in refuses(results)} == {"healthy_now", "value_known"}
    assert not any(result.because for result in results)


def test_a_foreign_engine_on_the_units_port_is_named() -> None:
    result = probes.load("port_owner").run(situation(observed=observed(port_owner={"pid": 4711})))

    assert "4711" in result.detail
    assert "100" in result.detail


def test_figures_are_given_where_something_was_measured() -> None:
    for name in ("disk_space", "host_memory", "start_limit", "stop_grace", "model_whole", "values_agree"):
        assert probes.load(name).run(situation()).figure


def test_an_unknown_check_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="healthy_now"):
        probes.load("healthy")


def test_a_generic_engines_declared_setting_is_not_asked_for() -> None:
    engine = engines.load(
        {"generic": {"ready": "GET / 200", "settings": {"workers": {"flag": "--workers", "type": "int"}}}}
    )
    declared = situation(engine=engine, setting=engine.setting("workers"), to="4", help=None)

    assert probes.load("value_known").run(declared).state == "not_applicable"
    assert probes.load("value_known").run(replace(declared, to="four")).state == "failed"


def test_memory_facts_that_are_no_numbers_do_not_pass() -> None:
    told = HostFacts.read({"disks": {"/var/lib/changectl": "plenty"}})

    assert probes.load("disk_space").run(situation(host=told)).state == "unknown"


def test_what_stands_in_the_way_of_a_restore_is_told_in_words() -> None:
    problems = [{"path": "/etc/chat.env", "problem": "no space is left", "reason": "no_space"}]
    result = probes.load("restorable").run(situation(capture=Capture(restorable=False, problems=problems)))

    assert "/etc/chat.env: no space is left" in result.detail
    assert "{" not in result.detail


def test_a_full_or_read_only_file_system_of_the_model_is_no_reason_to_refuse() -> None:
    disks = {
        "/var/lib/changectl": {"free": 10 * GIB},
        UNIT: {"free": GIB},
        "/srv/m.gguf": {"free": 0, "read_only": True},
    }
    assert probes.load("disk_space").run(situation(host=host(disks=disks))).state == "passed"


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"observed": observed(files={UNIT: file(), OWN: file(mtime_ns=NEWER)})}, "failed"),
        ({"observed": observed(files={UNIT: file(), OWN: file(mtime_ns=None)})}, "unknown"),
        ({"observed": observed(files={UNIT: file()})}, "unknown"),
        ({"observed": observed(process=None)}, "unknown"),
    ],
)
def test_a_file_that_the_engine_reads_itself_must_be_older_than_the_process(
    changed: dict[str, Any], state: CheckState
) -> None:
    result = probes.load("edited_since_start").run(situation(read_by_engine=(OWN,), **changed))
    assert (result.state, result.level, result.refuses) == (state, "required", True)
    assert "the process does not show" in result.hint


def test_beside_a_file_that_the_engine_reads_itself_others_are_told_only() -> None:
    files = {UNIT: file(mtime_ns=NEWER), OWN: file()}
    result = probes.load("edited_since_start").run(situation(read_by_engine=(OWN,), observed=observed(files=files)))
    assert (result.state, result.level) == ("failed", "advice")


def test_an_access_control_list_that_nobody_understands_is_told_and_refuses_nothing() -> None:
    readable = {"uid": 990, "all": None, "not": [], "unclear": ["m.gguf"]}
    result = probes.load("model_readable").run(situation(model=model(readable_by=readable)))
    assert (result.state, result.level) == ("unknown", "advice")
    assert "m.gguf" in result.detail


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (values(Seen("2"), Seen("2"), Seen("2")), "file, process and engine agree"),
        (values(Seen("2"), Seen("2"), NOT_EXPOSED), "file and process agree; the engine does not tell"),
        (values(Seen("2"), UNKNOWN, Seen("2")), "file and engine agree; the process does not tell"),
        (
            values(Seen("2"), Seen("2"), Seen("2")) + values(Seen("2"), Seen("2"), NOT_EXPOSED),
            "file, process and engine agree; the engine tells 1 of 2",
        ),
        (
            values(Seen("2"), UNKNOWN, UNKNOWN),
            "neither process nor engine tell; the service was started after the last edit of the file",
        ),
    ],
)
def test_only_places_that_could_be_read_are_said_to_agree(rows: tuple[ThreeValues, ...], words: str) -> None:
    result = probes.load("values_agree").run(situation(values=rows))
    assert (result.state, result.detail) == ("passed", words)


@pytest.mark.parametrize(
    ("kinds", "figure", "words"),
    [
        (["gguf"], "1 file, 100 B", "headers and lengths fit"),
        ([None], "1 file, 100 B", "not a known format: only its presence was checked"),
        (["safetensors", None], "2 files, 100 B", "headers and lengths fit; of 1 other only the presence was checked"),
    ],
)
def test_a_model_file_of_an_unknown_format_is_not_said_to_be_whole(
    kinds: list[str | None], figure: str, words: str
) -> None:
    files = [{"path": f"part{number}", "size": 100, "header": kind} for number, kind in enumerate(kinds)]
    result = probes.load("model_whole").run(situation(model=model(files=files)))
    assert (result.state, result.figure, result.detail) == ("passed", figure, words)


def test_a_figure_counts_one_thing_as_one() -> None:
    found = {
        result.name: result.figure for result in probes.run_all(situation(observed=observed(files={UNIT: file("x")})))
    }

    assert found["file_writable"] == "1 file"
    assert not [figure for figure in found.values() if figure.startswith("1 ") and figure.split()[1].endswith("s")]


def test_a_refused_connection_is_not_called_loading() -> None:
    pages = llamacpp_pages(health=Page(None, {}, "", "Connection refused", None))
    found = next(result for result in probes.run_all(situation(pages=pages)) if result.name == "healthy_now")

    assert (found.state, found.figure) == ("failed", "does not answer")
    assert "refused" in found.detail
