"""An inventory folder for hosts of the lab: hosts.yml, services/ and workloads/ beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService
from tests.lab.harness.vllm_service import VllmService


def write_inventory(
    folder: Path,
    hosts: Sequence[LabHost],
    *,
    user: str = "root",
    group: str = "gpu",
    others: Sequence[LabHost] = (),
    services: Mapping[str, str] | None = None,
    workloads: Mapping[str, str] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Path:
    """Write an inventory and return the path of its hosts.yml, which is what `-i` names.

    Args:
        folder: where to write; made if it is not there.
        hosts: the members of `group`.
        user: `root`, or `ops`, who becomes root through sudo.
        group: the group that services name.
        others: hosts outside the group, for example a caller.
        services: file name without .yml -> text, for services/.
        workloads: file name -> text, for workloads/.
        variables: further variables of all hosts.
    """
    shared = {**connection_variables([*hosts, *others][0], user), **(variables or {})}
    inventory = {
        "all": {
            "vars": shared,
            "children": {group: {"hosts": {host.name: {"ansible_host": host.address} for host in hosts}}},
            "hosts": {host.name: {"ansible_host": host.address} for host in others},
        }
    }
    path = folder / "hosts.yml"
    folder.mkdir(parents=True, exist_ok=True)
    # JSON is YAML, and needs no library to be right.
    path.write_text(json.dumps(inventory, indent=2) + "\n")
    for name, text in (services or {}).items():
        _write(folder / "services" / f"{name}.yml", text)
    for name, text in (workloads or {}).items():
        _write(folder / "workloads" / name, text)
    return path


def connection_variables(host: LabHost, user: str = "root") -> dict[str, Any]:
    """Return the Ansible variables that open a host of the lab, with its key checked."""
    checked = f"-F none -o UserKnownHostsFile={host.known_hosts} -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
    variables: dict[str, Any] = {
        "ansible_user": user,
        "ansible_ssh_private_key_file": str(host.private_key),
        "ansible_ssh_common_args": checked,
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    if user != "root":
        variables["ansible_become"] = True
    return variables


def describe_service(
    service: LlamaService | VllmService, *, levels: str = "{normal: 4 streams}", more: str = ""
) -> str:
    """Return the text of services/NAME.yml for a service of the lab; `more` is appended."""
    return f"""version: 1
service: {service.name}
class: interactive
instances: {{group: gpu, each: {{endpoint: "http://127.0.0.1:{service.port}"}}}}
engine: {service.engine}
manager: {{systemd: {{unit: {service.unit}}}}}
config:
  - {{unit: {service.unit}, format: flags}}
  - {{file: {service.env_file}, format: env}}
model: {{path: {service.model}, name: {service.name}}}
conditions: {{workload: workloads/{service.name}.jsonl, levels: {levels}}}
limits: {{load_on_live: true}}
{more}"""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
