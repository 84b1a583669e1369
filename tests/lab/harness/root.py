"""The root file system all hosts of the lab start from, and the engine they get read-only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.harness.install import SUITE
from tests.lab.harness.paths import CACHE, digest_of, made_once

PACKAGES = (
    "systemd,systemd-sysv,dbus,openssh-server,python3,iproute2,procps,sudo,attr,acl,ca-certificates,"
    "libgomp1,libnuma1,"  # what the engines link to
    "nginx-light"  # the balancer; it runs where a test starts it
)
XLLAMACPP = "2026.10.11549"
#: The interpreter of the hosts (Debian bookworm), for which the engine's wheel is chosen whatever runs the tests.
HOST_PYTHON = "3.11"
#: Where hosts see the engine's package; a .pth file in the root points there.
ENGINE_MOUNT = "/opt/llama"

#: `ops`: an administrator with sudo and no password. `llm`: the engine's own user.
_LIBRARIES = f"usr/local/lib/python{HOST_PYTHON}/dist-packages"
_MASKED = "systemd-timesyncd.service apt-daily.timer apt-daily-upgrade.timer console-getty.service"
_SETUP = " && ".join(
    (
        'chroot "$1" useradd --create-home --shell /bin/bash ops',
        'chroot "$1" useradd --system --home-dir /srv/llm --shell /usr/sbin/nologin llm',
        """echo 'ops ALL=(ALL) NOPASSWD: ALL' > "$1/etc/sudoers.d/ops\"""",
        'chmod 0440 "$1/etc/sudoers.d/ops"',
        # Every host makes its own at its first boot.
        'rm -f "$1"/etc/ssh/ssh_host_*',
        ': > "$1/etc/machine-id"',
        """printf '%s\\n' 'UseDNS no' 'MaxStartups 100' > "$1/etc/ssh/sshd_config.d/lab.conf\"""",
        f'mkdir -p "$1{ENGINE_MOUNT}" "$1/{_LIBRARIES}"',
        f'echo {ENGINE_MOUNT} > "$1/{_LIBRARIES}/llama.pth"',
        f'chroot "$1" systemctl --quiet mask {_MASKED}',
        'chroot "$1" systemctl --quiet disable nginx.service',
    )
)


def root() -> Path:
    """Return the folder of the hosts' root file system, made once per recipe (about 25 s)."""
    return made_once(CACHE / f"root-{digest_of(SUITE, PACKAGES, _SETUP)}", _bootstrap)


def engine() -> Path:
    """Return the folder with llama.cpp's server (the package xllamacpp) for the hosts' interpreter, made once."""
    return made_once(CACHE / f"llama-{XLLAMACPP}", _install_engine)


def _bootstrap(folder: Path) -> None:
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", f"--customize-hook={_SETUP}"]
    try:
        subprocess.run([*command, SUITE, str(folder)], check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _install_engine(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pick = ["--only-binary=:all:", "--implementation=cp", f"--python-version={HOST_PYTHON}"]
    subprocess.run([*pip, *pick, f"--target={folder}", f"xllamacpp=={XLLAMACPP}"], check=True)
