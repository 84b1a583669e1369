"""What a run learns to keep to itself."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.observed import Observed
from changectl.core.redaction.redactor import Tripwire
from changectl.workflow.secrets import Secrets

SECRET = "correct-horse-battery"


def learned(*values: str) -> tuple[Secrets, list[Tripwire]]:
    wires: list[Tripwire] = []
    secrets = Secrets(b"salt", wires.append)
    secrets.learn(values)
    return secrets, wires


def observed(content: str = "", environ: dict[str, str] | None = None, argv: list[str] | None = None) -> Observed:
    encoded = base64.b64encode(content.encode()).decode()
    return Observed.read({
        "process": {"pid": 1, "argv": argv or ["x"], "environ": environ or {}},
        "files": {"/etc/a": {"exists": True, "content": encoded}},
    })  # fmt: skip


def test_what_is_learned_guards_the_records_at_once() -> None:
    _, wires = learned(SECRET)
    assert wires[-1].finds(f"x{SECRET}y".encode())


def test_nothing_new_changes_nothing() -> None:
    secrets, wires = learned(SECRET)
    redactor = secrets.redactor
    secrets.learn([SECRET, "", "short"])
    assert secrets.redactor is redactor
    assert len(wires) == 1


@pytest.mark.parametrize(
    "seen",
    [
        observed(f"API_KEY={SECRET}\n"),
        observed(f"api_key: {SECRET}\n"),
        observed(f'{{"password": "{SECRET}"}}'),
        observed(f"url = http://user:{SECRET}@host/\n"),
        observed(environ={"HF_TOKEN": SECRET}),
        observed(argv=["server", "--api-key", SECRET]),
        observed(argv=["server", f"--api-key={SECRET}"]),
    ],
)
def test_what_looks_secret_on_a_host_is_learned(seen: Observed) -> None:
    secrets, _ = learned()
    secrets.learn_observed(seen)
    assert SECRET not in secrets.clean(f"the log says {SECRET}!")


def test_a_password_of_a_url_is_known_as_it_is_meant_too() -> None:
    secrets, _ = learned()
    secrets.learn_observed(observed("url = http://user:pass%2Fword@host/\n"))
    assert "pass/word" not in secrets.clean("login with pass/word failed")


def test_what_the_inventory_and_the_service_give_is_learned() -> None:
    secrets, _ = learned()
    secrets.learn_host({"ansible_become_password": SECRET, "ansible_host": "192.0.2.1"}, "sk-bearer-1234")
    assert secrets.clean([SECRET, "sk-bearer-1234", "192.0.2.1"])[2] == "192.0.2.1"
    assert not {SECRET, "sk-bearer-1234"} & set(secrets.clean([SECRET, "sk-bearer-1234"]))


@pytest.mark.parametrize(
    "variables",
    [
        {"vault_chat": SECRET},
        {"vault_chat": {"deep": ["x", SECRET]}},
        {"chat": {"api_key": SECRET}},
        {"chat_token": SECRET},
        {"ansible_ssh_pass": SECRET},
        {"ansible_become_pass": SECRET},
        {"vault_certificate": f"-----BEGIN-----\n{SECRET}\n-----END-----\n"},
    ],
)
def test_variables_of_a_host_that_are_secret_by_name_are_learned(variables: dict[str, Any]) -> None:
    secrets, wires = learned()
    secrets.learn_host(variables, None)
    assert SECRET not in secrets.clean(f"the log says {SECRET}!")
    assert wires[-1].finds(SECRET.encode())


@pytest.mark.parametrize(
    "variables",
    [
        {"ansible_host": "gpu1.example.org"},
        {"ansible_ssh_private_key_file": "/home/ops/.ssh/id_ed25519"},
        {"ansible_become_password": "{{ vault_become }}"},
        {"ansible_become": True, "auth_enabled": None},
        {"max_tokens": "1234567"},
    ],
)
def test_variables_that_are_no_secrets_stay_readable(variables: dict[str, Any]) -> None:
    secrets, _ = learned()
    secrets.learn_host(variables, None)
    text = " ".join(map(str, variables.values()))
    assert secrets.clean(text) == text


def test_a_name_by_which_the_record_is_read_again_stays_even_if_a_vault_holds_the_word() -> None:
    secrets, wires = learned("production", SECRET)
    secrets.spare(["chat-production", "/etc/chat.env"])
    assert secrets.clean("chat-production") == "chat-production"
    assert not wires[-1].finds(b"chat-production")
    secrets.learn(["/etc/chat.env"])
    assert secrets.clean(["/etc/chat.env", SECRET])[0] == "/etc/chat.env"
    assert SECRET not in secrets.clean(SECRET)


def test_equal_secrets_have_equal_digests_that_do_not_show_them() -> None:
    secrets, _ = learned(SECRET)
    assert secrets.digest(SECRET) == secrets.digest(SECRET) != secrets.digest(SECRET + "x")
    assert SECRET not in secrets.digest(SECRET)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_a_body_without_secrets_stays_as_it_is(body: Any) -> None:
    assert learned("a secret that nobody writes by chance")[0].clean(body) == body
