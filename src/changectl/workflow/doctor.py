"""`changectl doctor`: is a host fit for changes? It is looked at, and what brings it back is proven there.

Nothing is recorded: no service is touched. On the host the lease tells who is at work, as for every run.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from changectl.core.doctor.examination import Examination, checks
from changectl.core.doctor.facts import Facts, Greeting, HostTold, Leftover, Proof, Trouble, key_unchecked
from changectl.core.errors import ChangectlError, InputError
from changectl.core.ports import Door, HostAddress
from changectl.workflow.doctor_proof import Proving
from changectl.workflow.doctor_tools import Instruments, Patient

CALL_TIMEOUT = 60.0  # seconds for a call that only looks
NO_PYTHON = ("python_too_old", "damaged_program")  # the words of a host whose Python cannot run our program


def examine(patient: Patient, tools: Instruments) -> Examination:
    """Look at one host; whatever goes wrong there becomes one of its checks.

    Raises:
        InputError: the inventory wants a connection that is not supported.
    """
    tools.stop()
    facts = _look(patient, tools)
    found = tuple(
        replace(check, figure=tools.clean(check.figure), todo=tools.clean(check.todo)) for check in checks(facts)
    )
    return Examination(patient.host.name, patient.state_dir, found, facts.proof, patient.sends_only)


def _look(patient: Patient, tools: Instruments) -> Facts:
    variables = patient.host.variables
    facts = Facts(
        local=str(variables.get("ansible_connection", "ssh")) == "local",
        become=str(variables.get("ansible_become", "false")).lower() in ("true", "yes", "1", "on"),
        password=tools.password or "ansible_become_password" in variables or "ansible_become_pass" in variables,
        unchecked=key_unchecked(variables),
        ended=tools.ended,
        sends_only=patient.sends_only,
    )
    try:
        door = tools.doors.open(patient.host)
    except InputError:
        raise
    except ChangectlError as error:
        return _why_not(patient, facts, error, tools)
    with closing(door):
        return _talk(patient, facts, door, tools)


def _why_not(patient: Patient, facts: Facts, error: ChangectlError, tools: Instruments) -> Facts:
    """Tell a host that nobody reaches from one where only sudo, or only Python, stands in the way."""
    trouble = _trouble(error)
    if trouble != "python" and facts.become:
        alone = HostAddress(patient.host.name, {**patient.host.variables, "ansible_become": False})
        try:
            with closing(tools.doors.open(alone)) as door:
                return replace(facts, trouble="sudo", said=str(error), greeting=_hello(door, patient, tools)[0])
        except ChangectlError as second:
            trouble, error = _trouble(second), second
    return replace(facts, trouble=trouble, said=str(error))


def _trouble(error: ChangectlError) -> Trouble:
    told = error.reason in NO_PYTHON or "no Python 3 was found" in str(error)
    return "python" if told else "unreachable"


def _talk(patient: Patient, facts: Facts, door: Door, tools: Instruments) -> Facts:
    proof: Proof | None = None
    try:
        greeting, clock, doubt = _hello(door, patient, tools)
        facts = replace(facts, greeting=greeting, clock=clock, clock_doubt=doubt)
        if patient.sends_only:
            return facts
        told = HostTold.read(ask(door, patient, "doctor", {}))
        left = [Leftover.read(item) for item in ask(door, patient, "leftovers", {}).get("items", ())]
        facts = replace(facts, told=told, leftovers=left)
        tools.stop()
        proof = Proving(patient.host, patient.state_dir, greeting, tools).prove(door)
    except ChangectlError as error:
        return replace(facts, unread=f"the host did not tell: {error}")
    return replace(facts, proof=proof)


def _hello(door: Door, patient: Patient, tools: Instruments) -> tuple[Greeting, float | None, float]:
    """Who answers, by how many seconds its clock is ahead of ours, and how far that may be wrong."""
    before, asked = _seconds(tools.clock.now()), tools.clock.monotonic()
    answer = ask(door, patient, "hello", {})
    doubt = (tools.clock.monotonic() - asked) / 2
    told = answer.get("wall_time")
    ahead = None
    if before is not None and isinstance(told, int | float):
        ahead = float(told) - (before + doubt)
    return Greeting.read(answer), ahead, doubt


def _seconds(moment: str) -> float | None:
    with suppress(ValueError):
        return datetime.fromisoformat(moment).timestamp()
    return None


def ask(door: Door, patient: Patient, call: str, args: dict[str, Any]) -> dict[str, Any]:
    """One call that only looks, in the patient's state folder."""
    place = {"state_dir": patient.state_dir} if patient.state_dir else {}
    return door.call(call, {**args, **place}, timeout=CALL_TIMEOUT)
