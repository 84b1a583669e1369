"""`changectl plan` on a real host: it looks at everything and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
#: What systemd, nspawn, sshd and Ansible themselves keep while somebody logs in; everything else is the operator's.
#: The time of /run itself is left out with them: sshd's message of the day is renamed into place there.
_THEIR_OWN = (
    "/run/systemd /run/log /run/user /run/sudo /run/utmp /run/motd.dynamic /run/dbus /run/host "
    "/root/.ansible /var/lib/systemd"
)
_FILES = (
    'find /etc /run /root /home /tmp /var/lib /var/tmp /srv /opt /usr/local /usr/lib/python3 -xdev "$@" '
    "-printf '%p %y %m %U:%G %s %T@ %l\\n' | sort"
)
_CONTENTS = "find /etc /srv -xdev -type f -exec sha256sum {} + | sort"


def everything(host: LabHost) -> list[str]:
    """Every file with type, mode, owner, size and time, and the content of configuration and models."""
    left_out = [word for path in _THEIR_OWN.split() for word in ("-path", path, "-prune", "-o")]
    left_out += ["-path", "/run", "-o"]
    files = host.run(["sh", "-c", _FILES, "sh", *left_out, "-true"]).stdout.splitlines()
    return files + host.run(["sh", "-c", _CONTENTS]).stdout.splitlines()


def processes(host: LabHost, service: LlamaService) -> tuple[int, str]:
    """The service's process and when it started."""
    pid = service.pid()
    return pid, host.read_file(f"/proc/{pid}/stat").decode().rpartition(")")[2].split()[19]


def test_a_preview_shows_the_change_and_leaves_the_host_as_it_is(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    h1.ssh("true")
    files, started = everything(h1), processes(h1, service)

    ended = desk.preview(desk.plan("{parameter: {name: parallel, from: 4, to: 6}}")).expect(0)

    assert everything(h1) == files
    assert processes(h1, service) == started
    instance = ended.document["steps"][0]["instances"][0]
    assert "-  --parallel 4" in instance["diff"]
    assert "+  --parallel 6" in instance["diff"]
    assert not {check["state"] for check in instance["checks"] if check["level"] == "required"} & {"failed", "unknown"}


def test_a_preview_says_that_apply_would_refuse_and_leaves_the_host_as_it_is(
    desk: Desk, h1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    desk.lay_out([service])
    h1.write_file(service.unit_file, service.unit_text().replace("--threads 1", "--threads 2"))
    h1.ssh("true")
    files, started = everything(h1), processes(h1, service)

    ended = desk.run("plan", "-i", "hosts.yml", desk.plan("{parameter: {name: parallel, from: 4, to: 6}}")).expect(3)

    assert "apply would refuse" in ended.out
    assert "no_pending_reload" in ended.out
    assert everything(h1) == files
    assert processes(h1, service) == started
