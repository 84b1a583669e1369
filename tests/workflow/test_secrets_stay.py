"""Secrets that a run meets stand in no record, no evidence, no message and no argument of a play."""

from __future__ import annotations

import json

import pytest
from tests.workflow.fake_host import ENV, UNIT, FakeHost
from tests.workflow.stage import BETTER, SERVICE, WORSE, Stage

from changectl.core.redaction.secrets import Tripwire

PLANTED = {
    "environment file": "correct-horse-battery-staple",
    "unit": "hf_AbCdEfGhIjKlMnOp",
    "bearer": "sk-live-0123456789abcdef",
    "become password": "Tr0ub4dor&3xtra",
    "url": "s3cr3tInUrl",
}
AUTH = SERVICE + 'auth: {bearer: "{{ vault_key }}"}\n'


def planted() -> Stage:
    variables = {"vault_key": PLANTED["bearer"], "ansible_become_password": PLANTED["become password"]}
    stage = Stage(service_text=AUTH, variables=variables)
    host = stage.host
    host.files[ENV] += f"API_KEY={PLANTED['environment file']}\n".encode()
    host.files[ENV] += f"PROXY=http://user:{PLANTED['url']}@proxy:3128\n".encode()
    unit = f"Environment=HF_TOKEN={PLANTED['unit']}\nExecStart="
    host.files[UNIT] = host.files[UNIT].replace(b"ExecStart=", unit.encode())
    host.restart()
    assert host.process is not None
    host.process.started, host.starts = -3600.0, 0
    host.process.environ["HF_TOKEN"] = PLANTED["unit"]
    host.on_start = lambda again: again.process.environ.update(HF_TOKEN=PLANTED["unit"]) if again.process else None
    stage.before = {"gpu1": host.digests()}
    return stage


def shown(stage: Stage) -> dict[str, bytes]:
    """Every sink but the encrypted snapshot."""
    sinks = {f"event {event.kind}": json.dumps(dict(event.body)).encode() for event in stage.journal.lines}
    sinks |= {f"blob {digest}": data for digest, data in stage.records.blobs.items()}
    sinks["arguments"] = json.dumps([dict(one) for one in stage.playbooks.arguments]).encode()
    sinks["waits"] = "\n".join(stage.reporter.waits).encode()
    return sinks


def leaks(stage: Stage) -> list[str]:
    return [f"{what} in {sink}" for what, secret in PLANTED.items() for sink, data in shown(stage).items()
            if Tripwire([secret]).finds(data)]  # fmt: skip


@pytest.mark.parametrize("slots", [BETTER, WORSE])
def test_no_planted_secret_leaves_the_host(slots: int) -> None:
    stage = planted()
    stage.apply(slots)

    assert stage.journal.bodies("step.closed")
    assert leaks(stage) == []


def test_an_engine_that_prints_its_secrets_while_it_fails_gets_them_taken_out() -> None:
    stage = planted()

    def refuse(argv: list[str]) -> str | None:
        everything = " ".join(f"{name.replace(' ', '_')}={value}" for name, value in PLANTED.items())
        return f"error: invalid argument: {everything}" if argv[-1] == "8" else None

    stage.host.refuses = refuse
    end = stage.apply(BETTER)

    assert end.exit_code == 4
    assert leaks(stage) == []
    assert not Tripwire(PLANTED.values()).finds(end.last.text.encode())


def test_a_host_whose_messages_quote_secrets_gets_them_taken_out() -> None:
    stage = planted()

    def quote(host: FakeHost, call: str) -> None:
        if call == "capture":
            raise RuntimeError(f"Authorization: Bearer {PLANTED['bearer']}, API_KEY={PLANTED['environment file']}")

    stage.host.on_call = quote
    end = stage.apply(BETTER)

    assert end.exit_code == 1
    assert leaks(stage) == []
    assert not Tripwire(PLANTED.values()).finds(end.last.text.encode())


def test_the_snapshot_holds_what_is_needed_to_go_back() -> None:
    stage = planted()
    stage.apply(WORSE)
    (copy,) = stage.records.snapshots.values()
    assert PLANTED["unit"].encode() in copy  # it is encrypted where it is kept
