"""What an inventory keeps in a file encrypted as a whole is shown nowhere, whatever its variables are called."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workflow.fake_host import ENV
from tests.workflow.stage import BETTER, SERVICE, WORSE, Stage, plan_text

from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.shipped import playbooks_folder
from changectl.core.redaction.secrets import Tripwire
from changectl.workflow.preview import preview

VALUES = {"vault_chat_key": "correct-horse-battery", "greeting": "blue-elephant-42", "chat_door": "tall giraffe 17"}
AUTH = SERVICE + 'auth: {bearer: "{{ vault_chat_key }}"}\n'


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An inventory with an encrypted file of variables, and the password beside it."""
    folder = tmp_path_factory.mktemp("inventory")
    (folder / "password").write_text("open-sesame\n")
    (folder / "hosts.yml").write_text("gpu: {hosts: {gpu1: {ansible_host: 192.0.2.1}}}\n")
    (folder / "group_vars").mkdir()
    variables = folder / "group_vars" / "gpu.yml"
    variables.write_text("".join(f"{name}: {value}\n" for name, value in VALUES.items()))
    tool = Path(sys.executable).parent / "ansible-vault"
    command = [str(tool), "encrypt", "--vault-id", f"prod@{folder / 'password'}", str(variables)]
    subprocess.run(command, capture_output=True, check=True)
    return folder / "hosts.yml"


def staged(source: Path) -> Stage:
    """The values stand where no name says that they are secret."""
    stage = Stage(service_text=AUTH)
    lines = "".join(f"SETTING_{number}={value}\n" for number, value in enumerate(VALUES.values()))
    stage.host.files[ENV] += lines.encode()
    stage.host.restart()
    assert stage.host.process is not None
    stage.host.process.started, stage.host.starts = -3600.0, 0
    stage.before = {"gpu1": stage.host.digests()}
    environ = {**os.environ, "HOME": str(source.parent)}
    learn = stage.tools.secrets.learn
    vaults = (f"prod@{source.parent / 'password'}",)
    inventory = AnsibleInventory(source, playbooks_folder(), None, vaults, environ, learn)
    stage.tools = dataclasses.replace(stage.tools, inventory=inventory)
    return stage


def test_a_plan_does_not_show_them(source: Path) -> None:
    stage = staged(source)
    change = f"{{environment: {{name: SETTING_1, from: {VALUES['greeting']}, to: other}}}}"
    text = plan_text(BETTER).replace("{parameter: {name: parallel, to: 8}}", change)

    (step,) = preview(stage.order(text), stage.tools)

    (instance,) = step.instances
    assert "SETTING_1" in instance.diff
    assert not Tripwire(VALUES.values()).finds(repr(step).encode())
    assert not Tripwire(VALUES.values()).finds(instance.diff.encode())


@pytest.mark.parametrize("slots", [BETTER, WORSE])
def test_a_run_records_none_of_them(source: Path, slots: int) -> None:
    stage = staged(source)
    stage.host.refuses = lambda argv: f"error: {VALUES}" if slots == WORSE and argv[-1] == "1" else None

    end = stage.apply(slots)

    sinks = [json.dumps(dict(event.body)).encode() for event in stage.journal.lines]
    sinks += [*stage.records.blobs.values(), end.last.text.encode(), "\n".join(stage.reporter.waits).encode()]
    assert stage.journal.bodies("step.closed")
    assert not any(Tripwire(VALUES.values()).finds(sink) for sink in sinks)
