"""The conversation with the host program, over a pipe of our own; and the one shell line that begins it."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from changectl.adapters.door import LATER, Conversation, HostDoor, greet, remote_command, sudo_password
from changectl.core.errors import ContactLost, HostCallError, Refused
from changectl.core.ports import HostAddress


@dataclass
class ScriptedPipe:
    """Answers every request with the lines that the script gives for it, in pieces as odd as pipes make them."""

    script: Callable[[dict[str, Any]], list[dict[str, Any]]]
    sent: list[bytes] = field(default_factory=list)
    waiting: bytes = b""
    closed: bool = False

    def send(self, data: bytes) -> None:
        self.sent.append(data)
        if data.startswith(b"{"):
            request = json.loads(data)
            self.waiting += b"".join(json.dumps(line).encode() + b"\n" for line in self.script(request))

    def receive(self, seconds: float) -> bytes:
        piece, self.waiting = self.waiting[:7], self.waiting[7:]
        return piece

    def close(self) -> None:
        self.closed = True


def ok(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": request["id"], "ok": {"call": request["call"]}}]


def test_an_answer_comes_back_whatever_pieces_it_came_in() -> None:
    conversation = Conversation("gpu1", ScriptedPipe(ok))
    assert conversation.call("hello", {}, timeout=5) == {"call": "hello"}
    assert conversation.call("status", {"a": 1}, timeout=5) == {"call": "status"}


def test_progress_is_passed_on_as_it_comes() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": request["id"], "progress": {"done": number}} for number in (1, 2)] + ok(request)

    seen: list[Any] = []
    Conversation("gpu1", ScriptedPipe(script)).call("model", {}, timeout=5, progress=seen.append)
    assert seen == [{"done": 1}, {"done": 2}]


@dataclass
class SlowPipe:
    """A host that says every now and then that it gets on, and answers in the end."""

    pause: float
    signs: int
    answer: bool = True

    def send(self, data: bytes) -> None:
        self.id = json.loads(data)["id"]

    def receive(self, seconds: float) -> bytes:
        time.sleep(min(self.pause, seconds))
        self.signs -= 1
        line: dict[str, Any] = {"id": self.id, "progress": {}} if self.signs >= 0 else {"id": self.id, "ok": {}}
        return json.dumps(line).encode() + b"\n" if self.signs >= 0 or self.answer else b""

    def close(self) -> None:
        """Nothing to end."""


def test_a_call_may_take_any_time_while_the_host_says_that_it_gets_on() -> None:
    began = time.monotonic()
    Conversation("gpu1", SlowPipe(0.05, signs=8)).call("measure", {}, timeout=0.2)
    assert time.monotonic() - began > 0.3


def test_a_host_that_falls_silent_is_given_up_after_its_last_sign_of_life() -> None:
    with pytest.raises(ContactLost, match="`measure` in time"):
        Conversation("gpu1", SlowPipe(0.05, signs=3, answer=False)).call("measure", {}, timeout=0.2)


def test_both_sides_say_that_they_are_there_while_a_call_must_not_go_on_alone() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": request["id"], "alive": True}] * 3 + ok(request)

    pipe = ScriptedPipe(script)
    answer = Conversation("c1", pipe).call("measure", {}, timeout=5, silence=15)
    assert answer["silent"] < 5
    assert json.loads(pipe.sent[0])["silence"] == 15
    assert pipe.sent[1:] == [b"\n"] * 3


def test_a_sign_of_life_that_came_late_is_not_taken_for_the_answer_to_the_next_call() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [*ok(request), {"id": request["id"], "alive": True}]

    conversation = Conversation("c1", ScriptedPipe(script))
    assert conversation.call("measure", {}, timeout=5, silence=15)["call"] == "measure"
    assert conversation.call("hello", {}, timeout=5) == {"call": "hello"}


def test_we_give_up_only_after_the_host_did_so_that_what_it_ran_has_ended() -> None:
    began = time.monotonic()
    with pytest.raises(ContactLost, match="`measure` in time"):
        Conversation("c1", ScriptedPipe(lambda request: [])).call("measure", {}, timeout=600, silence=0.1)
    assert LATER < time.monotonic() - began < LATER + 5


def test_an_answer_that_takes_its_time_on_a_slow_network_is_no_silence() -> None:
    began = time.monotonic()
    pipe = TricklingPipe(b'{"id": 1, "ok": {"records": "' + b"x" * 40 + b'"}}\n', pause=0.02)
    answer = Conversation("c1", pipe).call("measure", {}, timeout=600, silence=-LATER + 0.2)
    assert answer["records"] == "x" * 40
    assert 0.02 <= answer["silent"] < time.monotonic() - began


@dataclass
class TricklingPipe:
    """Brings one byte at a time."""

    data: bytes
    pause: float

    def send(self, data: bytes) -> None:
        """Nobody reads it."""

    def receive(self, seconds: float) -> bytes:
        time.sleep(self.pause)
        piece, self.data = self.data[:1], self.data[1:]
        return piece

    def close(self) -> None:
        """Nothing to end."""


def test_a_failure_on_the_host_keeps_its_reason() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": request["id"], "error": {"reason": "changed_by_other", "message": "no", "found": "aa"}}]

    with pytest.raises(HostCallError, match="gpu1: no") as caught:
        Conversation("gpu1", ScriptedPipe(script)).call("write", {}, timeout=5)
    assert (caught.value.reason, caught.value.details) == ("changed_by_other", {"found": "aa"})


def test_silence_is_contact_lost_and_names_the_call() -> None:
    with pytest.raises(ContactLost, match="`status` in time"):
        Conversation("gpu1", ScriptedPipe(lambda request: [])).call("status", {}, timeout=0.05)


@pytest.mark.parametrize("line", [b"Welcome to gpu1!\n", b'"text"\n', b"\xff\n"])
def test_what_is_no_answer_is_contact_lost_and_is_not_quoted(line: bytes) -> None:
    pipe = ScriptedPipe(lambda request: [])
    conversation = Conversation("gpu1", pipe)
    pipe.waiting = line
    with pytest.raises(ContactLost) as caught:
        conversation.call("hello", {}, timeout=1)
    assert "Welcome" not in str(caught.value)


def test_somebody_who_asks_the_run_to_end_is_heard_while_the_host_is_silent() -> None:
    def check() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Conversation("gpu1", ScriptedPipe(lambda request: []), check).call("measure", {}, timeout=60)


def test_a_call_that_broke_off_ends_its_conversation_and_the_next_call_begins_a_new_one() -> None:
    pipes = [ScriptedPipe(lambda request: []), ScriptedPipe(ok)]
    begun = iter(pipes)
    door = HostDoor(lambda: Conversation("gpu1", next(begun)))

    with pytest.raises(ContactLost):
        door.call("measure", {}, timeout=0.05)
    assert pipes[0].closed
    assert door.call("status", {}, timeout=5) == {"call": "status"}
    assert len(pipes[0].sent) == 1  # what was asked there is never asked a second time by itself


def test_a_refusal_by_the_host_program_does_not_end_the_conversation() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": request["id"], "error": {"reason": "no", "message": "no"}}]

    pipe = ScriptedPipe(script)
    door = HostDoor(lambda: Conversation("gpu1", pipe))
    with pytest.raises(HostCallError):
        door.call("write", {}, timeout=5)
    assert not pipe.closed
    door.close()
    door.close()
    assert pipe.closed


def test_the_program_travels_behind_a_line_with_a_fixed_word() -> None:
    pipe = ScriptedPipe(ok)
    greet(Conversation("gpu1", pipe), b"PK-zip")
    assert pipe.sent[0] == b"changectl 6\nPK-zip"


def test_a_host_that_cannot_run_the_program_is_refused_with_its_sentence() -> None:
    def script(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": 0, "error": {"reason": "python_too_old", "message": "this host's Python is 3.6"}}]

    with pytest.raises(Refused, match=r"gpu1: this host's Python is 3\.6") as caught:
        greet(Conversation("gpu1", ScriptedPipe(script)), b"")
    assert caught.value.reason == "python_too_old"


# -- the command line --------------------------------------------------------------------------------------------------
def command(password: str | None = None, **variables: Any) -> str:
    return remote_command(HostAddress("gpu1", variables), "print('it runs')", password)


def test_without_an_interpreter_the_first_python_that_is_there_is_taken() -> None:
    done = subprocess.run(["/bin/sh", "-c", command()], capture_output=True, text=True, check=True)
    assert done.stdout == "it runs\n"


def test_a_host_without_python_says_so() -> None:
    done = subprocess.run(["/bin/sh", "-c", command()], capture_output=True, text=True, check=False, env={"PATH": "/x"})
    assert done.returncode == 127
    assert "no Python 3" in done.stderr


def test_the_inventorys_interpreter_is_taken_and_quoted() -> None:
    words = shlex.split(command(ansible_python_interpreter="/opt/my python/bin/python3"))
    assert words == ["/opt/my python/bin/python3", "-c", "print('it runs')"]


@pytest.mark.parametrize("value", [True, "true", "yes", "True", 1])
def test_become_goes_through_sudo_without_asking_where_no_password_is_known(value: Any) -> None:
    words = shlex.split(command(ansible_become=value, ansible_python_interpreter="/usr/bin/python3"))
    assert words[:5] == ["sudo", "-H", "-n", "-u", "root"]


def test_a_password_is_read_from_the_input_and_stands_nowhere_in_the_command() -> None:
    text = command("hunter2-hunter2", ansible_become=True, ansible_become_user="svc $(id)")
    words = shlex.split(text)
    assert words[:8] == ["sudo", "-H", "-k", "-S", "-p", "", "-u", "svc $(id)"]
    assert "hunter2" not in text


def test_without_become_nothing_goes_through_sudo() -> None:
    assert not command(ansible_become="false").startswith("sudo")
    assert sudo_password(HostAddress("gpu1", {"ansible_become_password": "x"}), "y") is None


def test_the_password_that_was_asked_for_wins_over_the_inventorys() -> None:
    host = HostAddress("gpu1", {"ansible_become": True, "ansible_become_pass": "inventory"})
    assert sudo_password(host, "asked") == "asked"
    assert sudo_password(host, None) == "inventory"
    assert sudo_password(HostAddress("gpu1", {"ansible_become": True}), None) is None
