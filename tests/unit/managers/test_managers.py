from __future__ import annotations

import math
from typing import Any

import pytest
from tests.unit.probes.situations import ENVIRONMENT, UNIT, file, observed

from changectl.core.errors import EditRefused, InputError
from changectl.core.manager import Manager
from changectl.core.observed import Observed, Status
from changectl.core.settings import Carrier
from changectl.managers import load, names
from changectl.managers.systemd import seconds

SYSTEMD, COMMAND = load("systemd"), load({"command": {"start": "x"}})
DROPIN = "/etc/systemd/system/chat.service.d/override.conf"


def status(**changed: Any) -> Status:
    return Status.read({"active": "active", "restarts": 0, "process": {"pid": 1, "start_ticks": 1}} | changed)


def test_the_family_lists_its_members_and_unknown_ones_are_refused() -> None:
    assert {"command", "systemd"} <= set(names())
    assert all(isinstance(load(name), Manager) for name in names())
    with pytest.raises(InputError, match="command, systemd"):
        load("upstart")
    with pytest.raises(InputError, match="one name"):
        load({"systemd": {}, "command": {}})


@pytest.mark.parametrize("unit", ["chat", "chat.service"])
def test_a_unit_may_leave_its_ending_out(unit: str) -> None:
    assert SYSTEMD.target({"systemd": {"unit": unit}}) == {"systemd": {"unit": "chat.service"}}


def test_a_template_instance_keeps_its_name() -> None:
    assert SYSTEMD.target({"systemd": {"unit": "vllm@a.b"}}) == {"systemd": {"unit": "vllm@a.b.service"}}


@pytest.mark.parametrize("unit", ["", None, "-x.service", "a b", "../x.service", "chat.socket"])
def test_what_is_no_service_unit_is_refused(unit: str | None) -> None:
    with pytest.raises(InputError, match="systemd/unit"):
        SYSTEMD.target({"systemd": {"unit": unit}})


def test_commands_become_words_and_no_shell_is_used() -> None:
    spec = {"command": {"start": "./run 'a b'", "stop": ["./run", "stop"], "cwd": "/srv", "pid": {"port": 8080}}}

    assert COMMAND.target(spec) == {
        "command": {"start": ["./run", "a b"], "stop": ["./run", "stop"], "cwd": "/srv", "pid": {"port": 8080}}
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"start": "run > log"},
        {"start": "a && b"},
        {"start": "run $HOME"},
        {"start": "'open"},
        {"start": ""},
        {"start": None},
        {"pid": None},
        {"pid": {"file": "run.pid"}},
        {"pid": {"port": 0}},
        {"pid": {"port": 8080, "file": "/x"}},
        {"cwd": "srv"},
        {"user": "root"},
    ],
)
def test_a_command_that_is_not_understood_is_refused(changed: dict[str, Any]) -> None:
    spec = {"start": "./run", "pid": {"file": "/run/x.pid"}} | changed

    with pytest.raises(InputError, match="manager/command"):
        COMMAND.target({"command": spec})


def test_a_units_files_come_in_effective_order() -> None:
    seen = observed(
        manager={"files": [UNIT, DROPIN]}, files={UNIT: file("unit"), DROPIN: file("drop-in"), ENVIRONMENT: file("A=1")}
    )

    assert SYSTEMD.carrier_files(seen, Carrier("flags", unit="chat")) == [(UNIT, b"unit"), (DROPIN, b"drop-in")]
    assert SYSTEMD.carrier_files(seen, Carrier("env", file=ENVIRONMENT)) == [(ENVIRONMENT, b"A=1")]
    assert [source.kind for source in SYSTEMD.environment_sources(seen)] == ["unit", "unit", "environment_file"]


@pytest.mark.parametrize(
    ("manager", "seen", "carrier"),
    [
        (SYSTEMD, observed(), Carrier("flags", unit="other.service")),
        (SYSTEMD, observed(manager={"files": None}), Carrier("flags", unit="chat")),
        (SYSTEMD, observed(files={UNIT: file(content=None)}), Carrier("flags", unit="chat")),
        (SYSTEMD, observed(), Carrier("yaml", file="/never/read.yaml")),
        (SYSTEMD, observed(files={"/x": {"exists": None, "error": "no"}}), Carrier("yaml", file="/x")),
        (COMMAND, observed(), Carrier("flags", unit="chat")),
    ],
)
def test_a_carrier_that_was_not_read_is_never_taken_for_empty(
    manager: Manager, seen: Observed, carrier: Carrier
) -> None:
    with pytest.raises(EditRefused):
        manager.carrier_files(seen, carrier)


def test_a_file_that_does_not_exist_is_no_file_of_the_carrier() -> None:
    assert COMMAND.carrier_files(observed(files={"/x": {"exists": False}}), Carrier("env", file="/x")) == []


def test_an_optional_environment_file_may_be_missing() -> None:
    seen = observed(files={UNIT: file("unit"), ENVIRONMENT: {"exists": False}})

    assert SYSTEMD.environment_sources(seen)[-1].data is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1min 30s", 90), ("infinity", math.inf), ("500ms", 0.5), ("10s", 10), ("2h 5min", 7500), ("90000000", 90),
        ("1d", 86400), ("", None), ("soon", None), ("5 parsecs", None),
    ],
)  # fmt: skip
def test_time_spans_are_read_as_systemd_prints_them(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("show", "ok"),
    [
        ({"StartLimitBurst": "5", "StartLimitIntervalUSec": "10s"}, True),
        ({"StartLimitBurst": "2", "StartLimitIntervalUSec": "10s"}, False),
        ({"StartLimitBurst": "2", "StartLimitIntervalUSec": "0"}, True),
        ({"StartLimitBurst": "0", "StartLimitIntervalUSec": "10s"}, True),
        ({"StartLimitBurst": "5"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_start_limit_is_compared_with_the_starts_needed(show: dict[str, str] | None, ok: bool | None) -> None:
    assert SYSTEMD.start_limit_room(show, 3).ok is ok
    assert COMMAND.start_limit_room(show, 3).ok is True


@pytest.mark.parametrize(
    ("now", "earlier", "state"),
    [
        (status(), None, "up"),
        (status(), status(), "up"),
        (status(restarts=2), status(restarts=1), "crash_loop"),
        (status(restarts=2), status(restarts=2), "up"),
        (status(active="failed", process=None), None, "crash_loop"),
        (status(active="activating"), None, "starting"),
        (status(active="activating", restarts=1), status(active="activating"), "crash_loop"),
        (status(active="inactive", process=None), None, "down"),
        (status(active="active", process=None), None, "down"),
        (status(restarts=None), status(restarts=1), "up"),
    ],
)
def test_a_units_state_is_told_from_its_status(now: Status, earlier: Status | None, state: str) -> None:
    assert SYSTEMD.state(now, earlier) == state


@pytest.mark.parametrize(
    ("now", "earlier", "state"),
    [
        (status(), None, "up"),
        (status(), status(), "up"),
        (status(process={"pid": 1, "start_ticks": 9}), status(), "crash_loop"),
        (status(active="inactive", process=None), status(), "crash_loop"),
        (status(active="failed", process=None), None, "crash_loop"),
        (status(active="activating", process=None), None, "starting"),
        (status(active="inactive", process=None), None, "down"),
    ],
)
def test_a_commands_state_is_told_from_its_process(now: Status, earlier: Status | None, state: str) -> None:
    assert COMMAND.state(now, earlier) == state


@pytest.mark.parametrize(
    ("header", "owner"),
    [
        (b"# Ansible managed\n", "Ansible"),
        (b"# Ansible managed: chat.j2 modified on 2026-01-01\n", "Ansible"),
        (b"; This file is managed by Puppet. DO NOT EDIT.\n", "Puppet"),
        (b"# Generated by Chef for host1\n", "Chef"),
        (b"# Managed with SaltStack\n", "Salt"),
        (b"# managed by hand\n", None),
        (b"ExecStart=/opt/ansible managed\n", None),
        (b"[Service]\n# salt the soup\n", None),
        (b"", None),
    ],
)
def test_a_configuration_managers_header_is_recognised(header: bytes, owner: str | None) -> None:
    found = SYSTEMD.managed_by({"/etc/x.conf": header})

    assert found == (None if owner is None else f"{owner} (/etc/x.conf)")


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        (UNIT, True),
        (DROPIN, True),
        ("/usr/lib/systemd/system/chat.service", True),
        ("/etc/chat.env", False),
        ("/etc/default/chat", False),
        ("/etc/chat.d/chat.conf", False),
        ("/etc/vllm/chat.yaml", False),
    ],
)
def test_units_need_a_daemon_reload_and_environment_files_do_not(path: str, needed: bool) -> None:
    assert SYSTEMD.needs_daemon_reload_after(path) is needed
    assert COMMAND.needs_daemon_reload_after(path) is False


def test_the_ports_holder_is_compared_with_the_process_tree() -> None:
    endpoint = "http://127.0.0.1:8080"

    assert SYSTEMD.owns_port(observed(), endpoint) is True
    assert SYSTEMD.owns_port(observed(port_owner={"pid": 4711}), endpoint) is False
    assert SYSTEMD.owns_port(observed(port_owner=None), endpoint) is True
    assert SYSTEMD.owns_port(observed(port_owner=None), "http://127.0.0.1:9999") is False
    assert SYSTEMD.owns_port(observed(process=None), endpoint) is None
    assert SYSTEMD.owns_port(observed(), "not a url") is None


def test_the_stop_grace_is_the_units_and_without_limit_for_a_command() -> None:
    assert SYSTEMD.stop_grace({"TimeoutStopUSec": "1min 30s"}) == 90
    assert SYSTEMD.stop_grace(None) is None
    assert COMMAND.stop_grace(None) == math.inf


def test_missing_safeguards_are_listed_and_not_guessed() -> None:
    assert SYSTEMD.missing_safeguards({"Restart": "always", "StandardOutput": "journal"}) == []
    assert len(SYSTEMD.missing_safeguards({"Restart": "no", "StandardOutput": "append:/var/log/x"}) or ()) == 2
    assert SYSTEMD.missing_safeguards({}) is None
    assert COMMAND.missing_safeguards(None)
