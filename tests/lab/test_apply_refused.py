"""Refusals on a real host: one clear reason, exit code 3, and the service never noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import Desk, Ended
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import connection_variables, describe_service
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
MORE_SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"
#: `chattr` is not on every host; the call behind it is.
_MARK = (
    "import fcntl,sys,array\n"
    "with open(sys.argv[1]) as file:\n"
    "    flags=array.array('l',[0])\n"
    "    fcntl.ioctl(file,0x80086601,flags,True)\n"
    "    flags[0]=flags[0]|16 if sys.argv[2]=='on' else flags[0]&~16\n"
    "    fcntl.ioctl(file,0x40086602,flags,True)\n"
)


def failed_checks(ended: Ended) -> set[str]:
    """The required pre-checks that refused, from the document of `apply`."""
    results: list[dict[str, Any]] = ended.document["steps"][0]["prechecks"]
    return {
        result["name"]
        for result in results
        if result["level"] == "required" and result["state"] in ("failed", "unknown")
    }


def undisturbed(service: LlamaService) -> tuple[str, str, int]:
    """What a refusal leaves as it is."""
    return service.stat(service.unit_file), service.stat(service.env_file), service.pid()


def test_a_plan_that_is_not_usable_touches_no_host(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = undisturbed(service)

    ended = desk.apply(desk.plan("{parameter: {name: paralel, from: 4, to: 6}}")).expect(2)

    problem = ended.document["error"]["problems"][0]
    assert (problem["file"], problem["line"]) == ("plan-0.yml", 7)
    assert "parallel" in problem["hint"]
    assert undisturbed(service) == before
    assert h1.run(["ls", "/var/lib/changectl"], check=False).returncode != 0


def test_what_is_so_already_is_kept_without_a_restart(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = undisturbed(service)

    ended = desk.apply(desk.plan("{parameter: {name: parallel, to: 4}}")).expect(0)

    assert ended.document["reason"] == "nothing_to_do"
    assert undisturbed(service) == before


def test_a_baseline_in_which_requests_fail_is_refused_before_anything_is_written(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    desk.ask("A story begins", "once upon a time " * 1000, tokens=24)  # the second has no room in any slot
    before = undisturbed(service)

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert ended.document["reason"] == "baseline_invalid"
    text = ended.document["steps"][0]["text"]
    assert "50% of the requests failed at normal (limit 20%): 12 http_4xx" in text
    assert "What to do: find out why they fail" in text
    assert undisturbed(service) == before


def test_a_value_that_the_engine_cannot_take_is_refused_also_in_a_variable(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = undisturbed(service)

    ended = desk.apply(desk.plan("{environment: {name: LLAMA_ARG_THREADS_HTTP, from: 4, to: many}}")).expect(3)

    assert failed_checks(ended) == {"value_known"}
    assert undisturbed(service) == before


def test_an_assertion_that_does_not_hold_is_refused(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = undisturbed(service)

    ended = desk.apply(desk.plan("{parameter: {name: parallel, from: 2, to: 6}}")).expect(3)

    assert ended.document["reason"] == "from_differs"
    assert "parallel is 4" in ended.document["steps"][0]["text"]
    assert undisturbed(service) == before


def test_a_port_that_another_engine_owns_is_refused(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    other = llama_service(h1, name="other", port=8001, switches=("--metrics", "--alias", "chat"))
    desk.lay_out([service], texts={"chat": describe_service(service).replace(":8000", ":8001")})
    before = undisturbed(service), undisturbed(other)

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert "port_owner" in failed_checks(ended)
    assert f"held by process {other.pid()}" in ended.document["steps"][0]["text"]
    assert (undisturbed(service), undisturbed(other)) == before


def test_a_unit_that_waits_for_a_reload_is_refused(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    h1.write_file(service.unit_file, service.unit_text().replace("--threads 1", "--threads 2"))
    before = undisturbed(service)

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert {"no_pending_reload", "values_agree"} <= failed_checks(ended)
    assert undisturbed(service) == before


def test_an_edit_that_was_never_activated_is_refused(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    text = h1.read_file(service.env_target).replace(b"THREADS_HTTP=4", b"THREADS_HTTP=2")
    h1.run(["tee", service.env_target], stdin=text)
    before = undisturbed(service)

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert failed_checks(ended) == {"values_agree"}
    assert "threads-http: file '2', process '4'" in ended.document["steps"][0]["text"]
    assert undisturbed(service) == before


def test_a_file_that_its_owner_made_immutable_is_refused(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    before = undisturbed(service)
    h1.run(["python3", "-c", _MARK, service.unit_file, "on"])
    try:
        ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)
    finally:
        h1.run(["python3", "-c", _MARK, service.unit_file, "off"])

    assert "file_writable" in failed_checks(ended)
    assert undisturbed(service) == before


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"ansible_ssh_common_args": "-F none -o UserKnownHostsFile=/dev/null"},
            "the host key of {address}:22 is unknown",
        ),
        ({"ansible_user": "nobody"}, "{address}:22 does not accept this user and key (nobody)"),
        ({"ansible_port": 2}, "cannot connect to {address}:2"),
    ],
    ids=["unknown-host-key", "wrong-user", "nobody-listens"],
)
def test_a_host_that_cannot_be_trusted_or_reached_is_refused_in_one_sentence(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker, variables: dict[str, Any], words: str
) -> None:
    service = llama_service(h1)
    desk.lay_out([service], variables=variables)
    before = undisturbed(service)

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    text = ended.document["steps"][0]["text"]
    assert words.format(address=h1.address) in text
    assert len(text.splitlines()) == 1
    assert undisturbed(service) == before


def test_a_host_whose_key_is_another_one_is_refused(
    desk: Desk, h1: LabHost, h2: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    wrong = desk.folder.parent / "known_hosts"
    wrong.write_text(f"{h1.address} {h2.host_key}\n")
    arguments = connection_variables(h1)["ansible_ssh_common_args"].replace(str(h1.known_hosts), str(wrong))
    desk.lay_out([service], variables={"ansible_ssh_common_args": arguments})

    ended = desk.apply(desk.plan(MORE_SLOTS)).expect(3)

    assert ended.document["reason"] == "host_key_changed"
