"""Every pre-check refuses (or, as advice, tells) what it is there for, on a real host: service, files and model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.lab import Lab
from tests.lab.precheck_bench import HTTP_THREADS, MORE_SLOTS, Bench, service_for_prechecks

from changectl import probes

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120, func_only=True)]


@pytest.fixture(scope="module")
def running(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The service all tests of this file look at."""
    service = service_for_prechecks(lab.host("h1"))
    folder: Path = tmp_path_factory.mktemp("prechecks")
    yield Bench(service, Desk(folder / "project", folder / "home"))
    service.uninstall()


@pytest.fixture
def bench(running: Bench) -> Iterator[Bench]:
    """The service in order, described as it is; a test that took it down gets it put up again."""
    yield running.describe()
    if not running.running():
        running.restart()


def test_a_service_in_order_is_refused_by_no_check_and_every_check_is_listed(bench: Bench) -> None:
    checked = bench.check()

    assert sorted(checked.checks) == probes.names()
    assert (checked.refusing, checked.code) == ([], 0)
    for name in ("gpu_memory", "driver_library"):
        checked.is_in(name, "not_applicable", "no GPU")
    checked.is_in("restorable", "not_applicable", "proven at apply")
    checked.is_in("pod_or_container", "passed", "container")


def test_an_edit_that_never_ran_is_not_activated_together_with_the_change(bench: Bench) -> None:
    with bench.edited(bench.service.env_file, lambda text: text.replace("=4", "=7")):
        checked = bench.check()

    checked.refused("values_agree", "failed", "threads-http", "'7'", "'4'")
    checked.advised("edited_since_start", "failed", bench.service.env_file)


def test_a_unit_that_waits_for_a_daemon_reload_is_not_reloaded_by_us(bench: Bench) -> None:
    with bench.edited(bench.service.unit_file, lambda text: text + "# a remark\n"):
        bench.check(HTTP_THREADS).refused("no_pending_reload", "failed", "not reloaded")


def test_an_endpoint_that_another_process_serves_is_not_measured(bench: Bench) -> None:
    other = "systemd-run --quiet --unit=other python3 -m http.server 8099 --bind 127.0.0.1"
    with bench.done(f"{other}; until ss -ltn | grep -q :8099; do sleep 0.05; done", "systemctl stop other"):
        pid = bench.sh("systemctl show --value --property=MainPID other").strip()
        checked = bench.describe(instances='{group: gpu, each: {endpoint: "http://127.0.0.1:8099"}}').check()

    checked.refused("port_owner", "failed", f"process {pid}", str(bench.service.pid()))


def test_a_service_that_crashes_again_and_again_is_not_changed(bench: Bench) -> None:
    damage = 'cp -a "$1" "$1.kept"; echo "no model at all" > "$1"'
    with bench.done(damage, 'mv "$1.kept" "$1"', bench.service.model):
        crashed = '[ "$(systemctl show --value --property=NRestarts "$1")" -gt 0 ]'
        bench.sh(f'systemctl restart "$1"; until {crashed}; do sleep 0.1; done', bench.service.unit)
        checked = bench.check()

    checked.refused("healthy_now", "failed", "restart")
    bench.restart()


def test_another_model_than_the_declared_one_is_not_changed(bench: Bench) -> None:
    checked = bench.describe(model=f"{{path: {bench.service.model}, name: another}}").check()

    checked.refused("healthy_now", "failed", "expected another")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("{parameter: {name: port, to: 9000}}", "port 9000"),
        ("{parameter: {name: model, to: /srv/models/other.gguf}}", "/srv/models/chat.gguf"),
        ("{parameter: {name: alias, to: other}}", "asking for chat"),
    ],
)
def test_what_the_service_file_says_otherwise_is_not_changed_as_a_parameter(
    bench: Bench, change: str, words: str
) -> None:
    bench.check(change).refused("named_by_service", "failed", words, "in the same commit")


def test_a_file_that_cannot_be_put_back_beside_the_original_is_refused_before_the_first_write(bench: Bench) -> None:
    small = "/mnt/full"
    fill = 'mkdir -p "$1"; mount -t tmpfs -o size=2M tmpfs "$1"; mkdir "$1/conf"; cp -L "$2" "$1/conf/chat.env"'
    fill += '; head -c 2M /dev/zero > "$1/ballast" 2>/dev/null || true'
    with (
        bench.done(fill, 'umount "$1"', small, bench.service.env_file),
        bench.drop_in(f"[Service]\nEnvironmentFile={small}/conf/chat.env\n"),
    ):
        bench.restart()
        config = f"[{{file: {small}/conf/chat.env, format: env}}]"
        ended = bench.describe(config=config).desk.apply(bench.desk.plan(HTTP_THREADS)).expect(3)

    step = ended.document["steps"][0]
    assert "restorable: the scratch restore differs" in step["text"]
    assert "no space is left on the file system" in step["text"]
    bench.restart()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ('truncate --size=-1000 "$1"', "bytes"),
        ("printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n' > \"$1\"", "git-lfs pointer"),
        ('printf "not a model" > "$1"', ""),
    ],
    ids=["cut short", "pointer file", "something else"],
)
def test_a_model_that_would_not_load_again_keeps_the_service_running(bench: Bench, damage: str, words: str) -> None:
    model = bench.service.model
    with bench.done('cp -a "$1" "$1.kept"; ' + damage, 'rm "$1"; mv "$1.kept" "$1"', model):
        checked = bench.check()

    checked.refused("model_whole", "failed", words, "do not restart it now")
    checked.refused("model_manifest", "failed", "changed after the service loaded it")


@pytest.mark.parametrize("path", ["/srv/models/chat.gguf", "/srv/models"], ids=["file", "folder"])
def test_a_model_that_the_services_user_may_not_read_is_found_before_the_stop(bench: Bench, path: str) -> None:
    with bench.done('stat -c %a "$1" > /run/mode; chmod 0700 "$1"', 'chmod "$(cat /run/mode)" "$1"', path):
        checked = bench.check()

    checked.refused("model_readable", "failed", "chat.gguf", "user id")


def test_a_model_of_another_owner_and_group_is_found_too(bench: Bench) -> None:
    with bench.done('chown ops:ops "$1"', 'chown root:llm "$1"', bench.service.model):
        bench.check().refused("model_readable", "failed", "chat.gguf")


def test_a_model_that_was_replaced_after_the_service_loaded_it_is_a_change_of_its_own(bench: Bench) -> None:
    model = bench.service.model
    with bench.done('cp -a "$1" "$1.kept"; touch "$1"', 'mv "$1.kept" "$1"', model):
        checked = bench.check(MORE_SLOTS)

    checked.refused("model_manifest", "failed", "chat.gguf")
    checked.is_in("model_whole", "passed")


def test_the_owner_of_a_managed_file_is_told(bench: Bench) -> None:
    with bench.edited(bench.service.env_file, lambda text: f"# Ansible managed\n{text}"):
        checked = bench.check(HTTP_THREADS)

    checked.advised("owner_managed", "failed", "Ansible", bench.service.env_file)
    checked.is_in("values_agree", "passed")
    checked.is_in("unit_verifies", "not_applicable")


def test_limits_that_nobody_set_are_told(bench: Bench) -> None:
    bench.check().advised("limits_present", "failed", "timeout", "3 of 4 set")


@pytest.mark.parametrize(
    ("lines", "words"),
    [("Restart=no", "no restart policy"), ("StandardOutput=append:/var/log/chat.log", "rotated")],
)
def test_a_service_without_safeguards_is_told(bench: Bench, lines: str, words: str) -> None:
    with bench.drop_in(f"[Service]\n{lines}\n"):
        bench.check().advised("safeguards", "failed", words)
