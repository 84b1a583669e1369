"""Secrets that a service, its inventory, its log and its checks hold are found in no record, output or process list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.lab.desk import ANY_FIGURES, Desk, Ended
from tests.lab.harness.hosts import LabError, LabHost
from tests.lab.harness.services import LlamaService
from tests.lab.sudo_user import sudo_user
from tests.lab.vault_desk import VAULT, VAULT_FILE, VAULT_PASSWORD, encrypted_variables
from tests.lab.watch import Watch, places

from changectl.core.redaction.redactor import Tripwire

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
API_KEY = "lab-engine-5a81cQ0vE7"
URL_PASSWORD = "pw-of-the-proxy-77d1"
SUDO_PASSWORD = "sudo of pw 3e9b!x"
LOGGED = "log-token-b05ed4f19a"
VAULTED = "vaulted-note-41cc8d"
NEW_KEY = "lab-rotated-90c2fE1u"
SECRETS = (API_KEY, URL_PASSWORD, SUDO_PASSWORD, LOGGED, VAULTED, NEW_KEY, VAULT_PASSWORD)
SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"
KEPT = f"    accept: {ANY_FIGURES}\n"
CHECK = """def test_the_environment_file_names_another_proxy(host):
    assert "proxy.example" in host.file("{path}").content_string
"""


@dataclass
class Scene:
    """A desk, a service that demands its key, and all that the commands said."""

    desk: Desk
    service: LlamaService
    said: list[Ended]

    @property
    def temporary(self) -> Path:
        """Where the commands put their temporary files."""
        return self.desk.home / "tmp"

    def run(self, *words: str, code: int = 0) -> Ended:
        """Run a command that touches hosts; remember what it said."""
        self.said.append(self.desk.run(words[0], "-i", "hosts.yml", *VAULT, *words[1:]))
        return self.said[-1].expect(code)

    def apply(self, *words: str, code: int = 0) -> Ended:
        """Apply; once more when this machine was too busy for the load generator itself."""
        for _ in range(3):
            ended = self.desk.run("apply", "-i", "hosts.yml", *VAULT, *words)
            self.said.append(ended)
            if ended.code == code or "did not keep up" not in ended.out:
                break
        return ended.expect(code)

    def read(self, *words: str) -> Ended:
        """Run a command that reads the record; remember what it said."""
        self.said.append(self.desk.run(*words))
        return self.said[-1].expect(0)


@pytest.fixture
def scene(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> Iterator[Scene]:
    """Secrets planted in the environment file, the inventory, a URL, the log and the sudo rules of the host."""
    # The engine's start says more than it should; the unit itself does not show what.
    h1.write_file("/usr/local/bin/announce", f'#!/bin/sh\necho "using api_key={LOGGED} for telemetry"\n', mode="0755")
    variables = {
        "LLAMA_ARG_THREADS_HTTP": "4",
        "LLAMA_API_KEY": API_KEY,
        "UPSTREAM_PROXY": f"http://reader:{URL_PASSWORD}@proxy.internal:3128/",
    }
    service = llama_service(h1, environment=variables, unit_lines=("ExecStartPre=/usr/local/bin/announce",))
    desk.environment = {"TMPDIR": str(desk.home / "tmp")}
    more = 'auth: {bearer: "{{ vault_chat_key }}"}\nready: {deadline: 12s}\n'
    with sudo_user(h1, SUDO_PASSWORD) as user:
        desk.lay_out([service], user=user, more=more)
        (desk.home / "tmp").mkdir()
        secrets = {"vault_chat_key": API_KEY, "ansible_become_password": SUDO_PASSWORD, "site_note": VAULTED}
        encrypted_variables(desk, secrets)
        yield Scene(desk, service, [])
    h1.run(["rm", "/usr/local/bin/announce"])


def found_in(folders: list[Path], leaving_out: set[str]) -> list[str]:
    """The places below the folders that hold a secret in any form."""
    tripwire = Tripwire(SECRETS)
    return [
        place
        for folder in folders
        for place, data in places(folder)
        if Path(place).name not in leaving_out and tripwire.finds(data)
    ]


def holding_files(host: LabHost) -> list[str]:
    """Every file of the host that holds a secret, as `mode owner folder's-mode path`."""
    patterns = "\n".join(SECRETS) + "\n"
    # -xdev: engines of this machine are bound into the host, gigabytes that nobody writes to.
    script = (
        "cat > /dev/shm/patterns; find /etc /home /opt /root /run /srv /tmp /usr/local /var -xdev -type f -print0 "
        "| xargs -0 grep -laF -f /dev/shm/patterns; rm /dev/shm/patterns"
    )
    paths = host.run(["sh", "-c", script], stdin=patterns).stdout.split()
    stat = 'for f; do echo "$(stat -c "%a %U" "$f") $(stat -c %a "$(dirname "$f")") $f"; done'
    return sorted(host.run(["sh", "-c", stat, "sh", *paths]).stdout.splitlines())


def test_planted_secrets_are_found_nowhere_while_changes_are_kept_reverted_and_shown(scene: Scene) -> None:
    service, desk = scene.service, scene.desk
    with pytest.raises(LabError, match="401"):  # the engine does demand its key
        service.get("/props")
    (desk.folder / "checks").mkdir()
    (desk.folder / "checks/proxy.py").write_text(CHECK.format(path=service.env_file))
    slots = desk.plan(SLOTS, more=KEPT)
    checked = desk.plan("{parameter: {name: parallel, to: 5}}", more=f"{KEPT}    checks: [checks/proxy.py]\n")
    proxy = desk.plan("{environment: {name: UPSTREAM_PROXY, to: 'http://proxy.example/'}}")
    rotated = desk.plan(f"{{environment: {{name: LLAMA_API_KEY, to: {NEW_KEY}}}}}")

    with Watch(SECRETS, scene.temporary) as watch:
        scene.run("plan", slots)
        scene.run("plan", "--json", proxy)
        scene.run("plan", rotated)
        kept = scene.apply("--json", slots).document["run"]["run"]
        undone = scene.apply("--json", "--debug", checked, code=4).document["run"]["run"]
        scene.apply(rotated, code=4)
        scene.run("revert", kept)
        for command in (["show", undone], ["diff", kept], ["history"], ["status"]):
            scene.read(*command)
            scene.read(*command, "--json")

    assert watch.found == set()
    assert watch.samples > 200
    assert watch.names >= {"changectl", "ansible-playbook", "ansible-vault", "llama-server"}
    tripwire = Tripwire(SECRETS)
    for ended in scene.said:
        assert not tripwire.finds((ended.out + ended.err).encode()), ended
    assert found_in([desk.folder, desk.home], {VAULT_FILE, rotated}) == []
    assert list(scene.temporary.iterdir()) == []
    story = desk.show(undone)["steps"][0]
    assert story["outcome"] == "reverted"
    assert "<*" in str(story["checks"]), "the check's output was to hold redacted values"


def test_on_the_host_only_the_runs_own_folder_holds_configuration(scene: Scene) -> None:
    host = scene.service.host
    before = holding_files(host)

    scene.apply("--json", scene.desk.plan(SLOTS, more=KEPT))

    new = [line for line in holding_files(host) if line not in before and "/log/journal/" not in line]
    assert new, "the snapshot was to be found"
    assert {line.split()[3].split("/runs/")[0] for line in new} == {"/var/lib/changectl"}
    assert {tuple(line.split()[:3]) for line in new} == {("600", "root", "700")}
    folders = host.run(["find", "/var/lib/changectl", "-type", "d", "-printf", "%m %u\\n"]).stdout.splitlines()
    files = host.run(["find", "/var/lib/changectl", "-type", "f", "-printf", "%m %u\\n"]).stdout.splitlines()
    assert (set(folders), set(files)) == ({"700 root"}, {"600 root"})
    written = host.run(["journalctl", "--no-pager", "--output=cat"]).stdout
    assert [secret for secret in SECRETS if secret != LOGGED and secret in written] == []
