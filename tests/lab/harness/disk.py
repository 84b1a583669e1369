"""A host's own disk: a folder of its changes laid over the root all hosts share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.lab.harness import faults

LAUNCHER = Path(__file__).resolve().parents[3] / "src" / "changectl" / "demo" / "llama_server.py"
_NETWORK_UNIT = """[Unit]
Description=The address of this lab host
Before=network.target ssh.service
DefaultDependencies=no

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ip addr replace {address}/24 dev host0
ExecStart=/sbin/ip link set host0 up

[Install]
WantedBy=multi-user.target
"""


def prepare(folder: Path, root: Path, name: str, address: str, public_key: str) -> None:
    """Mount `folder`/root and give the host its name, keys, address and the engine's command.

    Raises:
        subprocess.CalledProcessError: the disk could not be mounted, or ssh-keygen failed.
    """
    for part in ("upper", "work", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    merged = folder / "root"
    options = f"lowerdir={root},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)], check=True)
    etc = merged / "etc"
    (etc / "hostname").write_text(f"{name}\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n")
    key = etc / "ssh/ssh_host_ed25519_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    unit = etc / "systemd/system/lab-network.service"
    unit.write_text(_NETWORK_UNIT.format(address=address))
    (etc / "systemd/system/multi-user.target.wants/lab-network.service").symlink_to(f"../{unit.name}")
    for home, owner in ((merged / "root", 0), (merged / "home/ops", 1000)):
        _authorise(home, owner, public_key)
    command = merged / "usr/local/bin/llama-server"
    command.write_text("#!/usr/bin/python3\n" + faults.added_to(LAUNCHER.read_text()))
    command.chmod(0o755)


def _authorise(home: Path, owner: int, public_key: str) -> None:
    folder = home / ".ssh"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    (folder / "authorized_keys").write_text(public_key)
    for path in (folder, folder / "authorized_keys"):
        shutil.chown(path, owner, owner)
