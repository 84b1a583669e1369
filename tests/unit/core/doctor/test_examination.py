"""From what was seen of a host to checks: nothing unknown passes, and whatever is not in order says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from changectl.core.doctor.examination import NAMES, SENDING, Examination, checks, exit_code, sudo_todo
from changectl.core.doctor.facts import Check, Facts, Greeting, HostTold, Leftover, Proof, key_unchecked
from changectl.core.errors import HostCallError

GB = 10**9
FOLDER: dict[str, Any] = {
    "path": "/var/lib/changectl", "exists": True, "place": "/var/lib/changectl", "attributes": "", "acl": "",
    "file_system": "ext4", "free": 10 * GB, "free_inodes": 10**6, "inodes": 10**6,
}  # fmt: skip
SYSTEMD: dict[str, Any] = {"state": "running", "reload": [], "transient": ""}
TEMPORARY: dict[str, Any] = {"path": "/tmp", "file_system": "ext4"}
RUN = "20261130-081502-chat-k3f7.1"
SOUND = Facts(
    local=False,
    become=True,
    password=False,
    unchecked="",
    greeting=Greeting(python="3.11.2", executable="/usr/bin/python3", uid=0, user="root"),
    told=HostTold.read({"folders": [FOLDER], "temporary": TEMPORARY, "systemd": SYSTEMD}),
    leftovers=(),
    clock=0.4,
    proof=Proof("proven", late=0.01, seconds=0.002, keeper="systemd", reboot_safe=True, executable="/usr/bin/python3",
                begun=True),
)  # fmt: skip


def told(**parts: Any) -> Facts:
    answer = {"folders": [FOLDER], "temporary": TEMPORARY, "systemd": SYSTEMD, **parts}
    return replace(SOUND, told=HostTold.read(answer))


def folder(**facts: Any) -> Facts:
    return told(folders=[{**FOLDER, **facts}])


def systemd(**facts: Any) -> Facts:
    return told(systemd={**SYSTEMD, **facts})


def left(**facts: Any) -> Facts:
    return replace(SOUND, leftovers=[Leftover(**facts)])


def test_a_sudo_that_fails_is_in_the_way_of_sending_load_too() -> None:
    facts = replace(SOUND, trouble="sudo", said="a password is required", told=None, proof=None, sends_only=True)

    assert [check.name for check in checks(facts) if check.state == "failed"] == ["sudo"]
    assert {check.name for check in checks(replace(SOUND, sends_only=True))} == set(SENDING)


def found(facts: Facts, name: str) -> Check:
    return next(check for check in checks(facts) if check.name == name)


def findings(facts: Facts) -> set[str]:
    return {check.name for check in Examination("gpu1", None, checks(facts)).findings}


def test_a_sound_host_has_every_check_and_all_are_ok() -> None:
    seen = checks(SOUND)

    assert [check.name for check in seen] == list(NAMES)
    assert {check.state for check in seen} == {"ok"}
    assert exit_code([Examination("gpu1", None, seen)]) == 0


def test_a_host_of_which_nothing_is_known_is_not_sound() -> None:
    nothing = Facts(local=False, become=False, password=False, unchecked="")

    assert findings(nothing) == {name for name, required in NAMES.items() if required and name != "taken_away"} - {
        "reachable", "host_key"}  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "cause", "known"),
    [("unreachable", "reachable", set()), ("sudo", "sudo", {"reachable", "host_key"}),
     ("python", "python", {"reachable", "host_key"})],
)  # fmt: skip
def test_what_stands_in_the_way_is_named_once_and_all_else_is_unknown_because_of_it(
    trouble: Any, cause: str, known: set[str]
) -> None:
    seen = checks(Facts(local=False, become=True, password=False, unchecked="", trouble=trouble, said="no"))
    states = {check.name: check for check in seen}

    assert {name for name, check in states.items() if check.state == "ok"} == known
    assert (states[cause].state, states[cause].figure) == ("failed", "no")
    assert {check.because for check in seen if check.state == "unknown"} == {cause}
    assert exit_code([Examination("gpu1", None, seen)]) == 3


@pytest.mark.parametrize(
    ("said", "todo"),
    [
        ("sudo: a password is required", "-K"),
        ("sudo: sorry, you must have a tty to run sudo", "!requiretty"),
        ("sudo: 1 incorrect password attempt", "not this user's"),
        ("ops is not in the sudoers file.", "NOPASSWD"),
        ("sh: 1: sudo: not found", "install sudo"),
        ("something else", "sudo -n true"),
    ],
)
def test_each_refusal_of_sudo_has_its_own_way_out(said: str, todo: str) -> None:
    assert todo in sudo_todo(said)


@pytest.mark.parametrize(
    ("facts", "name", "state", "figure"),
    [
        (folder(problem="it belongs to uid 7"), "state_folder", "failed", "uid 7"),
        (folder(writes="no space is left", attributes=None, acl=None), "state_folder", "failed", "no space"),
        (folder(file_system="tmpfs"), "state_folder", "advice", "tmpfs"),
        (folder(exists=False, place="/var/lib"), "state_folder", "ok", "can be made"),
        (folder(stale=["/x/.changectl-doctor-1"]), "state_folder", "advice", ".changectl-doctor-1"),
        (folder(free=15_999_999), "room", "failed", "16.0 MB free"),
        (folder(free=None), "room", "unknown", "not told"),
        (folder(free_inodes=199), "room", "failed", "199 inodes"),
        (folder(free_inodes=0, inodes=0), "room", "ok", "not counted"),
        (folder(acl="Operation not supported"), "attributes", "advice", "access lists"),
        (folder(attributes=None, acl=None), "attributes", "unknown", "not tried"),
        (told(temporary={"path": "/tmp", "options": ["noexec", "rw"]}), "temporary_folder", "ok", "does not matter"),
        (told(temporary={"path": None, "problem": "none is usable"}), "temporary_folder", "advice", "none is usable"),
        (told(systemd=None), "systemd", "advice", "not booted with it"),
        (systemd(state="degraded", failed=["a.service"]), "systemd", "advice", "a.service"),
        (systemd(state="maintenance"), "systemd", "failed", "maintenance"),
        (systemd(state=None), "systemd", "failed", "does not tell"),
        (systemd(transient="Access denied"), "systemd", "failed", "Access denied"),
        (systemd(reload=["vllm.service"]), "daemon_reload", "advice", "vllm.service"),
        (systemd(reload=None), "daemon_reload", "unknown", "does not tell"),
        (replace(SOUND, clock=-7200.0), "clock", "advice", "7200.0 s behind"),
        (replace(SOUND, clock=70.0, clock_doubt=15.0), "clock", "ok", "70.0 s ahead"),
        (replace(SOUND, unchecked="ansible_host_key_checking: False"), "host_key", "failed", "not by Ansible"),
        (replace(SOUND, greeting=Greeting(python="3.6.8", executable="p", uid=0)), "python", "failed", "3.6.8"),
        (replace(SOUND, greeting=Greeting(python="?", executable="p", uid=0)), "python", "unknown", "'?'"),
        (replace(SOUND, greeting=Greeting(python="3.11.2", executable="/opt/p", uid=0)), "same_python", "advice",
         "plays on /usr/bin/python3"),
        (replace(SOUND, greeting=Greeting(python="3.9.2", executable="p", uid=7, user="ops")), "sudo", "advice", "ops"),
        (replace(SOUND, password=True), "sudo", "ok", "password that was given"),
    ],
)  # fmt: skip
def test_each_fact_has_its_state(facts: Facts, name: str, state: str, figure: str) -> None:
    seen = found(facts, name)

    assert (seen.state, figure in seen.figure) == (state, True), seen
    assert bool(seen.todo) or state in ("ok", "unknown") or name in ("attributes", "systemd")
    assert not seen.todo.startswith("nothing")
    assert findings(facts) == ({name} if seen.finding else set())


def test_the_worst_of_several_folders_counts_and_all_are_told() -> None:
    other = {**FOLDER, "path": "/srv/state", "place": "/srv/state", "free": 1}
    seen = found(told(folders=[FOLDER, other]), "room")

    assert seen.state == "failed"
    assert "/var/lib/changectl: 10.0 GB free" in seen.figure
    assert "/srv/state: 1 B free" in seen.figure


def test_a_label_that_nobody_gave_is_advice_only_where_it_is_enforced() -> None:
    labelled = {**FOLDER, "label": "system_u:object_r:unlabeled_t:s0"}
    enforced = found(told(folders=[labelled], selinux="enforcing"), "attributes")

    assert (enforced.state, "restorecon" in enforced.todo) == ("advice", True)
    assert found(told(folders=[labelled], selinux="permissive"), "attributes").state == "ok"


def test_the_folders_of_runs_are_no_rubbish() -> None:
    seen = found(left(what="run", place="/s/runs/R", run="R", removable=True, size=3_100), "leftovers")

    assert (seen.state, seen.figure) == ("ok", "folders of runs, their way back: 1 (3.1 kB)")


def test_an_armed_run_without_anybody_at_work_is_a_finding_that_names_the_command() -> None:
    facts = left(what="run", place="/s/runs/R", run=RUN, armed=True, how="python3 /s/runs/R/program.pyz restore")
    seen = found(facts, "leftovers")

    assert findings(facts) == {"leftovers"}
    assert seen.todo.splitlines() == [
        f"{RUN}: changectl recover 20261130-081502-chat-k3f7",
        "or on the host itself: python3 /s/runs/R/program.pyz restore",
    ]


@pytest.mark.parametrize("own", ["", "/1"], ids=["alone", "one of several on the host"])
def test_an_armed_run_that_is_at_work_is_not_disturbed(own: str) -> None:
    armed = Leftover(what="run", place="/s/runs/R", run=RUN + own, armed=True)
    unit = Leftover(what="boot_unit", place="/etc/systemd/system/u.service", run=RUN + own)
    lease = Leftover(what="lease", place="/s/lease.json", run=RUN, live=True, owner="kim@desk")
    seen = found(replace(SOUND, leftovers=[lease, armed, unit]), "leftovers")

    assert (seen.state, "kim@desk is at work" in seen.figure) == ("ok", True)


def held_by(ended: dict[str, str]) -> Facts:
    lease = Leftover(
        what="lease",
        place="/s/lease.json",
        run=f"{RUN}.1",
        live=True,
        owner="kim@desk",
        controller="20261130-09-revert",
    )
    return replace(SOUND, leftovers=[lease], proof=Proof("not_now", "held by kim@desk on a run"), ended=ended)


def test_a_lease_of_a_run_that_has_its_end_in_the_record_says_how_it_ended_and_what_settles_it() -> None:
    facts = held_by({"20261130-09-revert": f"ended with exit code 6 and is not settled: changectl revert {RUN}"})

    for name in ("leftovers", "dead_man"):
        seen = found(facts, name)
        assert seen.state in ("advice", "unknown")
        assert (
            seen.todo
            == f"run 20261130-09-revert of kim@desk ended with exit code 6 and is not settled: changectl revert {RUN}"
        )
        assert "at work" not in seen.figure


def test_a_lease_of_a_run_that_the_record_does_not_know_is_told_without_a_guess() -> None:
    facts = held_by({})

    assert found(facts, "leftovers").figure.endswith(
        "run 20261130-09-revert of kim@desk is at work, or ended a moment ago"
    )
    assert (
        found(facts, "dead_man").figure
        == "not proven now: run 20261130-09-revert of kim@desk has the lease of this host"
    )


@pytest.mark.parametrize(
    ("what", "run", "todo"),
    [("temporary", RUN, "cleanup"), ("sleeper", RUN, "cleanup"), ("run", "doctor-20261130", "rm -r /s/x")],
)
def test_what_lies_about_is_advice_with_its_owner_and_how_it_goes(what: str, run: str, todo: str) -> None:
    seen = found(left(what=what, place="/s/x", run=run, how="cleanup", removable=True), "leftovers")

    assert (seen.state, seen.todo) == ("advice", f"/s/x: {todo}")
    assert run in seen.figure


@pytest.mark.parametrize(
    ("proof", "state", "figure"),
    [
        (Proof("not_now", "run R of kim holds it"), "unknown", "not proven now: run R of kim"),
        (Proof("lost", "no answer"), "unknown", "no answer"),
        (Proof("failed", "it slept on"), "failed", "it slept on"),
        (Proof("proven", late=0.2, seconds=0.1, keeper="process", reboot_safe=False, unsafe_why="no systemd",
               begun=True), "advice", "no systemd"),
    ],
)  # fmt: skip
def test_only_a_proof_is_a_proof(proof: Proof, state: str, figure: str) -> None:
    seen = found(replace(SOUND, proof=proof), "dead_man")

    assert (seen.state, figure in seen.figure) == (state, True)
    assert seen.finding == (state != "advice")


def test_what_is_left_of_the_proof_is_a_finding_and_named() -> None:
    proof = Proof("failed", "no", left=("run /s/runs/doctor-1: rm -r it",), begun=True)

    assert findings(replace(SOUND, proof=proof)) == {"dead_man", "taken_away"}
    assert "/s/runs/doctor-1" in found(replace(SOUND, proof=proof), "taken_away").figure


@pytest.mark.parametrize(
    ("variables", "culprit"),
    [
        ({}, ""),
        ({"ansible_host_key_checking": False}, "ansible_host_key_checking"),
        ({"ansible_ssh_common_args": "-F none -o StrictHostKeyChecking=no"}, "ansible_ssh_common_args"),
        ({"ansible_ssh_extra_args": '-o "StrictHostKeyChecking off"'}, "ansible_ssh_extra_args"),
        ({"ansible_ssh_args": "-oStrictHostKeyChecking=NO"}, "ansible_ssh_args"),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=yes"}, ""),
        ({"ansible_ssh_common_args": "-o StrictHostKeyChecking=accept-new"}, ""),
    ],
)
def test_an_inventory_that_lets_anybody_answer_is_noticed(variables: dict[str, Any], culprit: str) -> None:
    told = key_unchecked(variables)

    assert (told.startswith(culprit), bool(told)) == (True, bool(culprit))


@pytest.mark.parametrize("answer", [{"temporary": {}}, {"temporary": {}, "folders": []}])
def test_an_answer_without_any_folder_is_not_understood(answer: dict[str, Any]) -> None:
    with pytest.raises(HostCallError, match="not understood: HostTold: folders"):
        HostTold.read(answer)
