"""A doctor proves that a host brings itself back, leaves nothing there, and takes no silence for health."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflow.fake_patient import OTHER, Patient, quiet

from changectl.core.doctor.examination import Examination
from changectl.core.doctor.facts import Check
from changectl.core.errors import ContactLost, HostCallError, InputError, Refused
from changectl.core.ports import HostAddress
from changectl.workflow.doctor import examine
from changectl.workflow.doctor_tools import Patient as Subject
from changectl.workflow.interrupts import Interrupted

HOST = HostAddress("gpu1", {"ansible_host": "10.0.0.1"})


def look(patient: Patient, host: HostAddress = HOST, state_dir: str | None = None, **other: Any) -> Examination:
    return examine(Subject(host, state_dir), patient.instruments(**other))


def found(examination: Examination, name: str) -> Check:
    return next(check for check in examination.checks if check.name == name)


def clean(patient: Patient) -> bool:
    return (patient.lease, patient.armed, patient.files) == (None, None, {})


def test_the_saved_bytes_come_back_while_nobody_asks_and_nothing_stays() -> None:
    patient = Patient()
    seen = look(patient)

    assert seen.findings == []
    assert {check.state for check in seen.checks} == {"ok"}
    assert seen.proof is not None
    assert seen.proof.late == pytest.approx(0.1, abs=0.02)
    assert seen.proof.seconds == 0.25
    assert quiet(patient.asked) > 3
    assert clean(patient)


def test_a_host_that_only_sends_load_is_looked_at_for_that_alone_and_nothing_is_written_there() -> None:
    patient = Patient()
    seen = examine(Subject(HOST, None, sends_only=True), patient.instruments())

    assert seen.sends_only
    assert {check.name for check in seen.checks} == {"reachable", "host_key", "python", "clock"}
    assert (seen.findings, seen.proof, patient.plays) == ([], None, [])


def test_it_is_changed_by_a_play_as_every_change_is_with_the_python_of_the_door() -> None:
    patient = Patient()
    look(patient)

    (given,) = patient.plays
    assert given["changectl_run"] == "doctor-1"
    assert given["changectl_arm"] == {"nonce": "n1", "only": [write["path"] for write in given["changectl_writes"]]}
    assert given["ansible_python_interpreter"] == "/usr/bin/python3"
    assert "changectl_state_dir" not in given


def test_what_the_inventory_and_the_service_say_of_python_and_folder_counts() -> None:
    patient = Patient()
    look(patient, HostAddress("gpu1", {"ansible_python_interpreter": "/opt/python3"}), "/srv/state")

    (given,) = patient.plays
    assert "ansible_python_interpreter" not in given
    assert given["changectl_state_dir"] == "/srv/state"
    assert {args.get("state_dir") for _, _, args in patient.asked} == {"/srv/state"}


def test_everything_that_changes_the_host_happens_under_a_lease() -> None:
    patient = Patient()
    look(patient)
    names = [name for _, name, _ in patient.asked]

    assert names.index("lease") < names.index("stage") < names.index("capture") < names.index("forget")
    assert names[-2:] == ["release", "leftovers"]


@pytest.mark.parametrize(
    ("ill", "why"),
    [
        ({"lateness": None}, "what keeps watch is gone"),
        ({"lateness": 1.2}, "1.20 s after its deadline"),
        ({"lateness": -0.5}, "after its deadline; at most"),
        ({"brings": "something else"}, "they are not there"),
        ({"outcome": "nothing_to_do"}, "did not bring the saved bytes back: nothing_to_do"),
        ({"arms": False}, "without an armed dead-man"),
        ({"writes": False}, "still holds the saved bytes"),
        ({"restorable": False}, "owner differs"),
        ({"play_fails": HostCallError("gpu1: nothing can sleep here", reason="no_keeper")}, "nothing can sleep here"),
    ],
)
def test_a_host_that_does_not_bring_itself_back_is_found_out_and_left_clean(ill: dict[str, Any], why: str) -> None:
    patient = Patient(**ill)
    seen = look(patient)

    assert found(seen, "dead_man").state == "failed"
    assert why in found(seen, "dead_man").figure
    assert [check.name for check in seen.findings] == ["dead_man"]
    assert clean(patient)


def test_a_host_that_another_run_holds_is_not_touched() -> None:
    patient = Patient(lease=dict(OTHER))
    seen = look(patient)

    assert [check.name for check in seen.findings] == ["dead_man"]
    assert found(seen, "dead_man").figure == "not proven now: held by run R-9 of kim@desk"
    assert patient.lease == OTHER
    assert {name for _, name, _ in patient.asked} <= {"hello", "doctor", "leftovers", "lease"}


def test_a_host_that_is_gone_after_the_proof_is_unknown_and_what_lies_there_is_named() -> None:
    def gone(patient: Patient, host: HostAddress) -> None:
        if patient.doors:
            raise ContactLost("gpu1: no route")

    seen = look(Patient(on_open=gone))

    assert (found(seen, "dead_man").state, found(seen, "taken_away").state) == ("unknown", "failed")
    assert "runs/doctor-1" in found(seen, "taken_away").figure
    assert {check.name for check in seen.findings} == {"dead_man", "taken_away"}


def test_a_link_that_hiccups_is_tried_again() -> None:
    failures = iter(range(3))

    def hiccup(patient: Patient, host: HostAddress) -> None:
        if patient.doors and next(failures, None) is not None:
            raise ContactLost("gpu1: no route")

    patient = Patient(on_open=hiccup)

    assert look(patient).findings == []
    assert clean(patient)


def test_a_folder_that_does_not_go_is_named() -> None:
    seen = look(Patient(forgets=False))

    assert "run /s/runs/doctor-1" in found(seen, "taken_away").figure
    assert [check.name for check in seen.findings] == ["taken_away"]


def test_a_play_that_was_lost_is_no_proof_and_the_host_is_left_clean() -> None:
    patient = Patient(play_fails=ContactLost("gpu1 is unreachable"))
    seen = look(patient)

    assert found(seen, "dead_man").state == "unknown"
    assert clean(patient)


@pytest.mark.parametrize("when", [2, 8])
def test_whoever_interrupts_leaves_nothing_behind(when: int) -> None:
    count = iter(range(1, 99))

    def stop() -> None:
        if next(count) == when:
            raise Interrupted("SIGINT")

    patient = Patient()
    with pytest.raises(Interrupted):
        look(patient, stop=stop)

    assert clean(patient)


def test_an_interrupt_that_cannot_clear_up_says_what_is_left() -> None:
    told: list[str] = []

    def stop() -> None:
        if patient.armed is not None:
            raise Interrupted("SIGTERM")

    patient = Patient(forgets=False)
    with pytest.raises(Interrupted):
        look(patient, stop=stop, tell=told.append)

    assert ["/s/runs/doctor-1" in text for text in told] == [True]


def test_where_only_sudo_stands_in_the_way_that_is_said() -> None:
    def no_sudo(patient: Patient, host: HostAddress) -> None:
        if host.variables.get("ansible_become"):
            raise ContactLost("gpu1: the host program ended. sudo: a password is required")

    patient = Patient(on_open=no_sudo, uid=1000)
    seen = look(patient, HostAddress("gpu1", {"ansible_become": True}))

    assert (found(seen, "reachable").state, found(seen, "python").state) == ("ok", "ok")
    assert found(seen, "sudo").state == "failed"
    assert "-K" in found(seen, "sudo").todo
    assert found(seen, "dead_man").because == "sudo"
    assert {name for _, name, _ in patient.asked} == {"hello"}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ContactLost("gpu1: cannot connect"), "reachable"),
        (Refused("gpu1: the host key is unknown", reason="host_key_unknown"), "reachable"),
        (Refused("gpu1: Python is 3.6", reason="python_too_old"), "python"),
        (ContactLost("gpu1: ended. no Python 3 was found on this host"), "python"),
    ],
)
@pytest.mark.parametrize("become", [True, False])
def test_a_host_that_cannot_be_talked_to_says_why(error: Exception, cause: str, become: bool) -> None:
    def closed(patient: Patient, host: HostAddress) -> None:
        raise error

    seen = look(Patient(on_open=closed), HostAddress("gpu1", {"ansible_become": become}))

    assert (found(seen, cause).state, found(seen, cause).figure) == ("failed", str(error))
    assert found(seen, "dead_man").because == cause


def test_a_connection_that_is_not_supported_is_a_mistake_in_the_inventory() -> None:
    def wrong(patient: Patient, host: HostAddress) -> None:
        raise InputError("ansible_connection winrm is not supported")

    with pytest.raises(InputError):
        look(Patient(on_open=wrong))


def test_a_clock_that_is_hours_ahead_is_advice_and_changes_no_proof() -> None:
    seen = look(Patient(clock=7200.0))

    assert found(seen, "clock").state == "advice"
    assert found(seen, "clock").figure.startswith("7200.0 s ahead")
    assert found(seen, "dead_man").state == "ok"


def test_plays_on_another_python_are_noticed() -> None:
    seen = look(Patient(python_of_plays="/opt/python3.9"))

    assert (found(seen, "same_python").state, seen.findings) == ("advice", [])
    assert "/opt/python3.9" in found(seen, "same_python").figure


def test_secrets_do_not_stand_in_what_is_shown() -> None:
    def closed(patient: Patient, host: HostAddress) -> None:
        raise ContactLost("gpu1: hunter22 is not it")

    seen = look(Patient(on_open=closed), clean=lambda text: text.replace("hunter22", "***"))

    assert found(seen, "reachable").figure == "gpu1: *** is not it"
