"""What a pre-check needs to know is missing: then it says so, and where it is required, it refuses.

The host itself withholds what it can be made to withhold; where nothing less helps, its interpreter is one to which
the kernel refuses an answer. What a host that answers at all cannot withhold is left to tests/unit/probes: an engine
without any settings (`cross_rules` knows them as soon as something runs), the bytes of the edited file
(`owner_managed`: without them there is no edit either, and that is named).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.lab import Lab
from tests.lab.precheck_bench import HTTP_THREADS, MORE_SLOTS, Bench, service_for_prechecks

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120, func_only=True)]


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


def test_of_a_stopped_service_nothing_is_assumed(bench: Bench) -> None:
    with bench.done('systemctl stop "$1"', 'systemctl start "$1"', bench.service.unit):
        checked = bench.check()
    bench.service.wait_ready()

    checked.refused("healthy_now", "failed", "not up")
    for name in ("values_agree", "port_owner", "cross_rules", "stop_grace"):
        checked.refused(name, "unknown")
    for name in ("model_readable", "model_manifest"):
        checked.refused(name, "unknown")
    for name in ("edited_since_start", "limits_present"):
        checked.advised(name, "unknown")
    for name in ("model_whole", "disk_space", "no_pending_reload", "start_limit", "unit_verifies", "value_known"):
        checked.is_in(name, "passed")


def test_a_systemd_that_leaves_properties_out_passes_nothing(bench: Bench) -> None:
    # A stand-in for an older systemd: the real answer without some of its lines.
    less = "StartLimitBurst|TimeoutStopUSec|NeedDaemonReload|Restart"
    with bench.stand_in("systemctl", f'#!/bin/sh\n@REAL@ "$@" | grep -vE "^({less})="\n'):
        checked = bench.check()

    for name in ("start_limit", "stop_grace", "no_pending_reload"):
        checked.refused(name, "unknown")
    checked.advised("safeguards", "unknown")
    checked.is_in("healthy_now", "passed")


def test_without_systemd_analyze_no_unit_counts_as_verified(bench: Bench) -> None:
    with bench.done('mv "$1" "$1.away"', 'mv "$1.away" "$1"', "/usr/bin/systemd-analyze"):
        bench.check().refused("unit_verifies", "unknown", "not verified")


def test_an_engine_that_cannot_be_asked_for_its_help_is_not_taken_to_know_the_value(bench: Bench) -> None:
    with bench.done('chmod 0600 "$1"', 'chmod 0755 "$1"', "/usr/local/bin/llama-server"):
        bench.check().refused("value_known", "unknown", "llamacpp")


def test_the_default_port_of_an_engine_is_not_taken_for_the_endpoints(bench: Bench) -> None:
    bench.check("{parameter: {name: port, to: absent}}").refused("named_by_service", "unknown", "default")


def test_memory_that_the_host_does_not_tell_is_not_taken_to_suffice(bench: Bench) -> None:
    with bench.done("mount --bind /dev/null /proc/meminfo", "umount /proc/meminfo"):
        checked = bench.check("{parameter: {name: ctx-size, to: 8192}}")

    checked.refused("host_memory", "unknown", "available memory is not known")


def test_a_gpu_whose_driver_does_not_answer_is_not_taken_for_none(bench: Bench) -> None:
    with bench.done("touch /dev/nvidia0", "rm /dev/nvidia0"):
        checked = bench.check()

    checked.refused("driver_library", "unknown", "could not be compared")
    checked.refused("gpu_memory", "unknown", "cannot be read")


#: An interpreter whose kernel gives no answer to one question; everything else is the real one.
NO_FREE_SPACE = """
import os
def withheld(path):
    raise PermissionError(13, "Permission denied", path)
os.statvfs = withheld
"""
NOTHING_OF_CGROUPS = """
import builtins
real = open
def withheld(path, *words, **named):
    if str(path).endswith(("/cgroup", "/mountinfo")):
        raise PermissionError(13, "Permission denied", path)
    return real(path, *words, **named)
builtins.open = withheld
"""


def withholding(bench: Bench, script: str) -> Bench:
    """The same host, seen through an interpreter that withholds something."""
    path = "/usr/local/bin/python-withholding"
    bench.service.host.write_file(path, f"#!/usr/bin/python3\nimport sys\n{script}\nexec(sys.argv[2])\n", mode="0755")
    return bench.variables({"ansible_python_interpreter": path})


def test_free_space_that_the_host_does_not_tell_is_not_taken_to_suffice(bench: Bench) -> None:
    checked = withholding(bench, NO_FREE_SPACE).check()

    checked.refused("disk_space", "unknown")
    assert checked.refusing == ["disk_space"]


def test_a_host_that_does_not_tell_whether_it_is_a_pod_is_not_taken_for_none(bench: Bench) -> None:
    checked = withholding(bench, NOTHING_OF_CGROUPS).check()

    checked.refused("pod_or_container", "unknown", "Kubernetes pod")
    assert checked.refusing == ["pod_or_container"]


def test_a_log_that_cannot_be_read_is_named_and_nothing_is_guessed(bench: Bench) -> None:
    with bench.stand_in(
        "journalctl", '#!/bin/sh\necho "No journal files were opened due to insufficient permissions." >&2\nexit 1\n'
    ):
        assert "journal cannot be read" in bench.refusal()


def test_a_configuration_file_that_cannot_be_read_is_named(bench: Bench) -> None:
    # Nothing else may say what file_writable and owner_managed need: bytes and marks of that very file.
    with bench.done('mv "$1" "$1.away"', 'mv "$1.away" "$1"', bench.service.env_target):
        refusal = bench.refusal(HTTP_THREADS)

    assert bench.service.env_file in refusal
    assert "not read" in refusal


def test_a_model_that_is_not_there_is_named(bench: Bench) -> None:
    refusal = bench.describe(model="{path: /srv/models/other, name: chat}").refusal()

    assert "/srv/models/other does not exist" in refusal


def test_a_unit_that_is_not_there_is_named(bench: Bench) -> None:
    refusal = bench.describe(
        manager="{systemd: {unit: other.service}}", config="[{unit: other.service, format: flags}]"
    ).refusal()

    assert "other.service does not exist" in refusal


def test_a_state_folder_that_cannot_be_made_leaves_nothing_proven_and_nothing_changed(bench: Bench) -> None:
    # `restorable` without an answer of the capture: a file lies where the folder should be.
    before = bench.service.pid(), bench.service.stat(bench.service.unit_file)
    with bench.done('touch "$1"', 'rm "$1"', "/srv/state"):
        desk = bench.describe(state_dir="/srv/state/changectl").desk
        ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert "/srv/state" in str(ended.document["steps"][0]["text"])
    assert (bench.service.pid(), bench.service.stat(bench.service.unit_file)) == before


def test_a_host_without_the_named_python_is_told_in_one_sentence(bench: Bench) -> None:
    refusal = bench.variables({"ansible_python_interpreter": "/opt/python9/bin/python"}).refusal()

    assert "/opt/python9/bin/python" in refusal
