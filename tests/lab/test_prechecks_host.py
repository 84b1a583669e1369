"""Every pre-check refuses what it is there for, on a real host: room, the engine's own word, the unit, the host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.lab import Lab
from tests.lab.precheck_bench import Bench, service_for_prechecks

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120, func_only=True)]
CHANGE = "{{parameter: {{name: {name}, to: '{to}'}}}}"


@pytest.fixture(scope="module")
def running(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The service all tests of this file look at."""
    service = service_for_prechecks(lab.host("h1"))
    folder: Path = tmp_path_factory.mktemp("prechecks")
    yield Bench(service, Desk(folder / "project", folder / "home"))
    service.uninstall()


@pytest.fixture
def bench(running: Bench) -> Bench:
    """The service in order, described as it is."""
    return running.describe()


@pytest.mark.parametrize(
    ("options", "words"), [("size=16M", "needs 67.1 MB"), ("size=99M,ro", "read-only")], ids=["small", "read-only"]
)
def test_a_file_system_without_room_for_the_runs_folder_is_refused(bench: Bench, options: str, words: str) -> None:
    mount = 'mkdir -p "$1"; mount -t tmpfs -o "$2" tmpfs "$1"'
    with bench.done(mount, 'umount "$1"', "/mnt/state", options):
        checked = bench.describe(state_dir="/mnt/state/changectl").check()

    checked.refused("disk_space", "failed", words, "/mnt/state/changectl")


def test_a_context_that_the_hosts_memory_cannot_hold_is_refused(bench: Bench) -> None:
    checked = bench.check(CHANGE.format(name="ctx-size", to=2_000_000_000))

    checked.refused("host_memory", "failed", "more needed", "available")
    checked.is_in("gpu_memory", "not_applicable")


@pytest.mark.parametrize(
    ("name", "to", "words"),
    [("seed", "5", "does not know seed"), ("parallel", "many", "number"), ("parallel", "-7", "-1")],
    ids=["a flag of another version", "no number", "out of range"],
)
def test_what_the_engine_would_not_start_with_is_refused_before_it_is_stopped(
    bench: Bench, name: str, to: str, words: str
) -> None:
    bench.check(CHANGE.format(name=name, to=to)).refused("value_known", "failed", words)


def test_a_rule_between_two_settings_is_known_before_the_stop(bench: Bench) -> None:
    checked = bench.check(CHANGE.format(name="ubatch-size", to=512))

    checked.refused("cross_rules", "failed", "ubatch-size 512 is larger than batch-size 256")


def test_an_edit_that_systemd_would_ignore_is_refused(bench: Bench) -> None:
    pattern = f"{{file: {bench.service.unit_file}, format: pattern, match: 'CPUAffinity=(?P<value>.*)'}}"
    bench.describe(config=f"[{pattern}]")

    bench.check(CHANGE.format(name="cpu-range", to="many")).refused("unit_verifies", "failed", "CPU affinity")
    bench.check(CHANGE.format(name="cpu-range", to="0-1")).is_in("unit_verifies", "passed")


def test_a_start_limit_that_would_forbid_the_way_back_is_refused(bench: Bench) -> None:
    with bench.drop_in("[Unit]\nStartLimitBurst=1\nStartLimitIntervalSec=1h\n"):
        bench.check().refused("start_limit", "failed", "2 starts needed, 1 allowed in 1h")


def test_a_drain_that_the_manager_has_no_patience_for_is_refused(bench: Bench) -> None:
    # llama.cpp does not drain; the rule is vLLM's. So the service file takes this process for a vLLM, which is enough
    # to compute it: the drain comes from the plan, the stop grace from the real unit.
    checked = bench.describe(engine="vllm").check(CHANGE.format(name="shutdown-timeout", to=120))

    checked.refused("stop_grace", "failed", "drain 120 s, killed after 20 s")


def test_a_pod_is_told_from_a_machine(bench: Bench) -> None:
    # The folder that every pod has; /var/run is /run.
    with bench.done('mkdir -p "$1"', 'rm -r "$1"', "/run/secrets/kubernetes.io"):
        bench.check().refused("pod_or_container", "failed", "Kubernetes pod")


def test_a_python_that_is_too_old_is_refused_in_one_sentence(bench: Bench) -> None:
    # A stand-in: a real interpreter that gives another version of itself.
    old = '#!/usr/bin/python3\nimport sys\nsys.version_info = (3, 6, 8, "final", 0)\nexec(sys.argv[2])\n'
    bench.service.host.write_file("/usr/local/bin/python-old", old, mode="0755")

    refusal = bench.variables({"ansible_python_interpreter": "/usr/local/bin/python-old"}).refusal()

    assert "Python is 3.6; Python 3.8 or newer is needed" in refusal
    assert "\n" not in refusal.strip()


def test_a_gpu_driver_and_a_library_of_different_versions_are_refused(bench: Bench) -> None:
    # No GPU is here. Files in the places where a driver and its library leave theirs are enough to compare versions;
    # all that NVML itself answers is left to tests/unit/probes and to machines that have one.
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Tue Jan  7 2025"
    place = (
        "mount -t tmpfs tmpfs /proc/driver; mkdir -p /proc/driver/nvidia/gpus/0000:01:00.0; "
        'echo "$1" > /proc/driver/nvidia/version; mkdir -p "$2"; '
        'touch "$2/libnvidia-ml.so.575.57.08"; ln -sf libnvidia-ml.so.575.57.08 "$2/libnvidia-ml.so.1"'
    )
    libraries = "/usr/lib/x86_64-linux-gnu"
    with bench.done(place, 'umount /proc/driver; rm "$2"/libnvidia-ml.so.*', version, libraries):
        checked = bench.check()

    checked.refused("driver_library", "failed", "driver 570.86.15, library 575.57.08", "a restart would fail now")
    checked.refused("gpu_memory", "unknown", "cannot be read")
