from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from changectl.core.errors import ChangectlError
from changectl.core.redaction.redactor import Redactor, Tripwire, forms, looks_secret, redact_diff, redact_text

VALUE = "Zq7-planted"
SECRETS = st.text(min_size=6, max_size=20).filter(lambda text: text.strip() != "")


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "hf-token",
        "api-key",
        "API_KEY",
        "VLLM_API_KEY",
        "apiKey",
        "apikey",
        "X-Api-Key",
        "password",
        "DB_PASSWD",
        "db_pwd",
        "passphrase",
        "secret",
        "clientSecret",
        "AWS_SECRET_ACCESS_KEY",
        "Authorization",
        "proxy-authorization",
        "bearer",
        "auth",
        "basic_auth",
        "credentials",
        "private_key",
        "ssh-key",
        "AWS_SESSION_TOKEN",
        "cookie",
        "encryption-keys",
        "accessToken",
    ],
)
def test_names_of_secrets_are_known(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        "max-num-batched-tokens",
        "max_tokens",
        "tokenizer",
        "tokenizer-mode",
        "eos_token",
        "pad-token",
        "token_budget",
        "max-num-seqs",
        "key",
        "keys",
        "primary_key",
        "ssl-keyfile",
        "PWD",
        "OLDPWD",
        "author",
        "model",
        "n_predict",
        "",
        "kv-cache-dtype",
        "tokens",
        "skip-special-tokens",
        "max-token",
        "passes",
        "keyboard",
    ],
)
def test_an_engines_own_words_are_not_taken_for_secrets(key: str) -> None:
    assert not looks_secret(key)


@pytest.mark.parametrize(
    "text",
    [
        "ExecStart=/usr/bin/vllm serve --api-key {} --max-num-seqs 64",
        "ExecStart=/usr/bin/vllm serve --api-key={} --max-num-seqs 64",
        "ExecStart=/usr/bin/vllm serve --api-key \\\n  {} --max-num-seqs 64",
        "--api-key '{}' --max-num-seqs 64",
        '--api-key="{} and more" --max-num-seqs 64',
        "--api-key a\\ {} --max-num-seqs 64",
        'Environment="HF_TOKEN={} b" "max-num-seqs 64"',
        "Environment=HF_TOKEN={}\nmax-num-seqs 64",
        "export HF_TOKEN={}\nmax-num-seqs 64",
        "DB_PASSWORD={} with blanks\nmax-num-seqs 64",
        '["--api-key", "{}", "max-num-seqs 64"]',
        '["--api-key={}", "max-num-seqs 64"]',
        "args:\n  - --api-key\n  - {}\n  - max-num-seqs 64",
        '  - "--api-key"\n  - "{}"\n  - max-num-seqs 64',
        "env:\n  - name: HF_TOKEN\n    value: {}\n  - max-num-seqs 64",
        '{{"name": "HF_TOKEN", "value": "{}", "x": "max-num-seqs 64"}}',
        "api_key: |\n  line\n  {}\nmax-num-seqs 64",
        "api_key: {}\nmax-num-seqs 64",
        'api_key: "{}"\nmax-num-seqs 64',
        '{{"api_key": "{}", "x": "max-num-seqs 64"}}',
        "{{api_key: {}, x: max-num-seqs 64}}",
        'api_key = """\n{}\n"""\nmax-num-seqs 64',
        "api_key = '{}'\nmax-num-seqs 64",
        "Authorization: Bearer {}\nmax-num-seqs 64",
        "Authorization: {}\nmax-num-seqs 64",
        "curl -H 'X-Api-Key: {}' max-num-seqs 64",
        "got header Bearer {} max-num-seqs 64",
        "https://user:{}@host/path max-num-seqs 64",
        "https://{}@host/path max-num-seqs 64",
        "https://host/hook?access_token={} max-num-seqs 64",
        "docker run -e HF_TOKEN={} image max-num-seqs 64",
        "pulled with hf_0123456789{} max-num-seqs 64",
        "key sk-0123456789{} max-num-seqs 64",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n{}\n-----END RSA PRIVATE KEY-----\nmax-num-seqs 64",
        'args: "serve --api-key {} --x", "max-num-seqs 64"',
    ],
)
def test_secret_values_leave_and_the_rest_stays(text: str) -> None:
    redacted = redact_text(text.format(VALUE), salt=b"salt")

    assert VALUE not in redacted
    assert "max-num-seqs 64" in redacted
    assert redacted.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "key",
    [
        "gsk_" + "aB3" * 14,
        "xai-" + "aB3" * 14,
        "r8_" + "aB3" * 12,
        "ghu_" + "aB3" * 12,
        "npm_" + "aB3" * 12,
        "dckr_pat_" + "aB3" * 9,
        "pypi-" + "aB3" * 20,
        "ya29." + "aB3" * 20,
        "sk_live_" + "aB3" * 8,
        "AIza" + "aB3_-" * 7,
        "ASIA" + "B3C4" * 4,
        "SG." + "aB3d" * 5 + "." + "aB3d" * 10,
    ],
)
def test_keys_are_known_by_their_shape_wherever_they_stand(key: str) -> None:
    redacted = redact_text(f"why does {key} not work with max-num-seqs 64?", salt=b"salt")

    assert key not in redacted
    assert redacted.endswith("not work with max-num-seqs 64?")


@pytest.mark.parametrize(
    "text",
    [
        "npm_config_cache=/srv/npm r8_0 AIza SG.1.2 xai-chat pypi-server ASIA",
        "vllm serve --max-num-batched-tokens 8192 --tokenizer auto --served-model-name chat",
        "api_key: {{ vault_chat_key }}",
        "api_key: ${CHAT_KEY}",
        "password: null",
        "PWD=/srv/chat",
        "http://127.0.0.1:8000/v1/models",
        "Environment=OMP_NUM_THREADS=4",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


def test_equal_secrets_look_equal_and_different_ones_do_not() -> None:
    one, two, three = (redact_text(f"token={value}", salt=b"s") for value in ("alpha", "alpha", "beta"))
    assert one == two != three
    assert redact_text("token=alpha", salt=b"other") != one


def test_redacting_twice_changes_nothing_more() -> None:
    once = redact_text("token: abc\nurl: https://u:p@h\n--api-key 'x y' z", ["x y planted"])
    assert redact_text(once, ["x y planted"]) == once


def test_a_diff_shows_the_change_and_that_a_secret_changed() -> None:
    before = b"--max-num-seqs 64\nHF_TOKEN=old-one\nsame\n"
    after = b"--max-num-seqs 128\nHF_TOKEN=new-one\nsame"
    diff = redact_diff(before, after, "/etc/vllm/chat.env", salt=b"s")

    assert "--- /etc/vllm/chat.env (before)\n+++ /etc/vllm/chat.env (after)\n" in diff
    assert "-- --max-num-seqs 64".replace("-- ", "-") in diff
    assert "+--max-num-seqs 128\n" in diff
    assert diff.count("HF_TOKEN=<*") == 2
    assert "one" not in diff
    assert "\\ No newline at end of file\n" in diff


def test_equal_contents_have_no_diff_and_absent_files_are_named() -> None:
    assert redact_diff(b"a", b"a", "f") == ""
    assert "(absent)" in redact_diff(None, b"a\n", "f")
    assert "-a" in redact_diff(b"a\n", None, "f")


def test_a_binary_file_is_told_apart_without_its_bytes() -> None:
    diff = redact_diff(b"\0secretvalue", b"\xff\xfe", "model.bin")
    assert diff.startswith("binary file model.bin differs: 12 bytes <*")
    assert "secretvalue" not in diff


@given(SECRETS, st.text(max_size=30), st.text(max_size=30), st.binary(min_size=8, max_size=8))
@example("redacted", "", "", b"saltsalt")
@example("abcd<*", "abcd", "", b"saltsalt")
@example("******", "***", "***", b"saltsalt")
def test_no_known_secret_survives_redaction(secret: str, before: str, after: str, salt: bytes) -> None:
    for shape in forms(secret):
        redacted = redact_text(f"{before}{shape}{after}", [secret], salt=salt)
        assert not any(form in redacted for form in forms(secret))


@given(st.lists(SECRETS, min_size=1, max_size=3), st.text(max_size=30), st.binary(min_size=8, max_size=8))
def test_no_known_secret_survives_in_a_diff(secrets: list[str], text: str, salt: bytes) -> None:
    before = f"a = {text}{secrets[0]}\nb = 1\n".encode(errors="replace")
    after = f"a = {secrets[-1]}{text}\nb = 2\n".encode(errors="replace")
    diff = redact_diff(before, after, f"/etc/{secrets[0]}", secrets, salt=salt)
    assert not any(form in diff for secret in secrets for form in forms(secret))


@given(st.text(max_size=200))
def test_redaction_takes_any_text_and_keeps_its_lines(text: str) -> None:
    assert Redactor(salt=b"s").text(text).count("\n") == text.count("\n")


@given(SECRETS, st.text(max_size=10), st.text(max_size=10))
def test_the_tripwire_finds_every_shape_of_a_secret(secret: str, before: str, after: str) -> None:
    wire = Tripwire([secret])
    raw = secret.encode(errors="surrogatepass")
    around = (before.encode(errors="surrogatepass"), after.encode(errors="surrogatepass"))
    shapes = [
        raw,
        base64.b64encode(around[0] + raw + around[1]),
        base64.urlsafe_b64encode(around[0] + raw),
        quote(secret, safe="", errors="surrogatepass").encode(),
        quote_plus(secret, errors="surrogatepass").encode(),
        json.dumps(f"{before}{secret}{after}").encode(),
        json.dumps(json.dumps(f"{before}{secret}")).encode(),
    ]
    for shape in shapes:
        assert wire.finds(shape)
        with pytest.raises(ChangectlError) as caught:
            wire.check("evidence", shape)
        assert caught.value.reason == "secret_in_record"
        assert "evidence" in str(caught.value)


def test_short_and_blank_values_trip_nothing_and_nothing_shows_the_secrets() -> None:
    wire = Tripwire(["abc", "", "       ", "planted-value"])
    wire.check("evidence", b"abc         abc")
    assert repr(wire) == "Tripwire(1 secrets)"


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "-",
        "a=",
        "a=b ",
        "'\"",
        "token=",
        "--api-key ",
        "a:",
        "\\",
        "http://",
        "name: ",
        "eyJaaaaaaaa.",
        "eyJ-",
        'a="""',
        "- --x\n- ",
        "bearer ",
        "token=abc ",
        "\n",
        "api_key: |\n  x\n",
        "-----BEGIN PRIVATE KEY-----\n",
        "api_key='",
        "é",
    ],
)
def test_no_text_makes_redaction_slow(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.monotonic()
    redact_text(text)
    assert time.monotonic() - start < 2  # a search that reads the same text again and again would take minutes
