"""`changectl doctor`: which hosts it looks at, and that mistakes are told before any host is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.cli_runner import Run
from tests.unit.core.doctor.test_examination import SOUND, replace

from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.project_files import find_project
from changectl.adapters.shipped import playbooks_folder
from changectl.cli._patients import patients
from changectl.core.doctor.examination import Examination, checks
from changectl.core.doctor.facts import Facts
from changectl.core.errors import InputError
from changectl.reports._blocks import Heading, Line
from changectl.reports.doctor import as_blocks, as_json

SERVICE = """\
version: 1
service: {name}
class: interactive
instances: {{group: {group}, each: {{endpoint: "http://127.0.0.1:8080"}}}}
engine: llamacpp
manager: {{systemd: {{unit: chat.service}}}}
config: [{{file: /etc/chat.env, format: env}}]
model: {{path: /srv/m.gguf, name: chat}}
conditions: {{workload: w.jsonl, levels: {{low: 1 stream}}}}
{more}
"""
TRAFFIC = "traffic: {nginx: {host: gpu2, file: /etc/nginx/c.conf, upstream: chat, member: '192.0.2.1:80'}}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three hosts, two of them in a group."""
    monkeypatch.chdir(tmp_path)
    gpu = {"hosts": {name: {"ansible_host": "192.0.2.1"} for name in ("gpu1", "gpu2")}}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"other": {}}, "children": {"gpu": gpu}}}))
    (tmp_path / "services").mkdir()
    return tmp_path


def service(place: Path, name: str, group: str = "gpu", more: str = "") -> None:
    (place / "services" / f"{name}.yml").write_text(SERVICE.format(name=name, group=group, more=more))


def chosen(*words: str, limit: str | None = None, told: list[str] | None = None) -> list[tuple[str, str | None]]:
    project = find_project(Path.cwd(), Path("hosts.yml"))
    inventory = AnsibleInventory(Path(project.inventory), playbooks_folder(), limit)
    found = patients(words, project, inventory, ([] if told is None else told).append)
    return [(one.host.name, one.state_dir) for group in found for one in group]


def test_without_a_service_it_is_the_whole_inventory(place: Path) -> None:
    assert {name for name, _ in chosen()} == {"gpu1", "gpu2", "other"}


def test_with_services_it_is_their_hosts_with_their_state_folders(place: Path) -> None:
    service(place, "chat")
    service(place, "talk", "gpu2", "state_dir: /srv/state")
    (place / "changectl.toml").write_text('inventory = "hosts.yml"\nstate_dir = "/data/changectl"\n')

    assert chosen() == [("gpu1", "/data/changectl"), ("gpu2", "/data/changectl"), ("gpu2", "/srv/state")]
    assert chosen("other") == [("other", "/data/changectl")]


def test_what_switches_users_and_what_sends_load_belongs_to_a_service_too(place: Path) -> None:
    more = f"state_dir: /srv/state\ncaller: other\n{TRAFFIC}"
    service(place, "chat", "gpu1", more)
    project = find_project(Path.cwd(), Path("hosts.yml"))
    found = patients([], project, AnsibleInventory(Path(project.inventory), playbooks_folder()), [].append)

    seen = {(one.host.name, one.state_dir, one.sends_only) for group in found for one in group}
    assert seen == {("gpu1", "/srv/state", False), ("gpu2", None, False), ("other", None, True)}


def test_groups_hosts_and_the_limit_narrow_it_down(place: Path) -> None:
    service(place, "chat")

    assert chosen("gpu") == [("gpu1", None), ("gpu2", None)]
    assert chosen("other,gpu2") == chosen("other", "gpu2") == [("other", None), ("gpu2", None)]
    assert chosen(limit="gpu2") == [("gpu2", None)]
    with pytest.raises(InputError, match="`other`, or --limit leaves it out"):
        chosen("other", limit="gpu2")
    with pytest.raises(InputError, match="--limit leaves none"):
        chosen("gpu", limit="other")


def test_a_service_that_is_not_usable_is_an_error_unless_hosts_are_named(place: Path) -> None:
    service(place, "chat", more="no_such_key: 1")
    told: list[str] = []

    with pytest.raises(InputError, match="no_such_key"):
        chosen()
    assert chosen("gpu1", told=told) == [("gpu1", None)]
    assert ["service chat is left out" in text for text in told] == [True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gpu3"], "did you mean `gpu"),
        (["--limit", "gpu1", "other"], "--limit leaves it out"),
        (["-i", "no"], "no such"),
    ],
)
def test_a_name_that_does_not_exist_is_one_clear_error(place: Path, run: Run, arguments: list[str], said: str) -> None:
    ended = run("doctor", "-i", "hosts.yml", *arguments) if "-i" not in arguments else run("doctor", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not (place / ".changectl").exists()


def test_outside_of_a_project_there_is_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("doctor")

    assert ended.code == 2
    assert "there is no project here" in ended.err
    assert list(tmp_path.iterdir()) == []


def lines(facts: Facts) -> list[str]:
    blocks = as_blocks([Examination("gpu1", None, checks(facts), facts.proof)])
    return [block.text for block in blocks if isinstance(block, Heading | Line)]


def test_people_read_each_check_and_below_it_what_to_do() -> None:
    assert lines(SOUND)[0] == "gpu1: fit for changes"
    told = lines(replace(SOUND, unchecked="ansible_host_key_checking: False"))

    assert told[0] == "gpu1: 1 finding"
    at = next(number for number, line in enumerate(told) if line.startswith("host_key: failed"))
    assert told[at + 1].startswith("- take that out of the inventory")


def test_what_could_not_be_looked_at_is_one_line() -> None:
    told = lines(Facts(local=False, become=False, password=False, unchecked="", trouble="unreachable", said="no route"))

    assert told[0] == "gpu1: 1 finding"
    assert told[1:2] == ["reachable: failed: no route"]
    assert told[-1].startswith("not looked at because of reachable: host_key, sudo")


def test_the_document_says_the_same() -> None:
    def document(facts: Facts) -> dict[str, Any]:
        return as_json([Examination("gpu1", "/s", checks(facts), facts.proof)])

    assert (document(SOUND)["exit_code"], document(SOUND)["hosts"][0]["sound"]) == (0, True)
    unproven = document(replace(SOUND, proof=None))
    assert (unproven["exit_code"], unproven["hosts"][0]["proof"]) == (3, None)
