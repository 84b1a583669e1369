"""What the lab needs from the machine, and how to get it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Debian package -> a program of it whose absence means that the package is missing.
PACKAGES = {
    "systemd-container": "systemd-nspawn",
    "mmdebstrap": "mmdebstrap",
    "openssh-client": "ssh",
    "iproute2": "ip",
    "attr": "getfattr",
    "acl": "getfacl",
    "util-linux": "nsenter",
}
SUITE = "bookworm"


class LabMissingError(Exception):
    """The lab cannot run on this machine; the text says why and what would help."""


def ensure() -> None:
    """Return if the lab can run here, installing Debian packages first where LAB_INSTALL=1 allows it.

    Raises:
        LabMissingError: it cannot, and why.
    """
    if os.geteuid() != 0:
        raise LabMissingError("the lab boots hosts of its own, which needs root")
    if f"VERSION_CODENAME={SUITE}" not in _os_release():
        raise LabMissingError(f"the lab is made for Debian {SUITE} (its hosts share the interpreter and the packages)")
    packages = missing_packages()
    if packages and not may_install():
        raise LabMissingError(f"Debian packages are missing: {' '.join(packages)}; LAB_INSTALL=1 installs them")
    if packages:
        install(*packages)
        packages = missing_packages()
    if packages:
        raise LabMissingError(f"these Debian packages brought no program: {' '.join(packages)}")
    if "overlay" not in Path("/proc/filesystems").read_text():
        subprocess.run(["modprobe", "overlay"], check=False, capture_output=True)
    if "overlay" not in Path("/proc/filesystems").read_text():
        raise LabMissingError("this kernel has no overlay file system")


def install(*packages: str) -> None:
    """Install Debian packages, one process of this machine at a time. Raises LabMissingError: apt-get failed."""
    with Path("/run/lock/changectl-tests-apt").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _apt_get("update")
        _apt_get("install", "--yes", "--no-install-recommends", *packages)


def missing_packages() -> list[str]:
    """Return the Debian packages whose programs are not there."""
    missing = [package for package, program in PACKAGES.items() if shutil.which(program) is None]
    # vLLM's environment is made with the system's interpreter, which Debian ships without venv's pip.
    if not list(Path("/usr/lib/python3.11/ensurepip").glob("__init__.py")):
        missing.append("python3-venv")
    return missing


def may_install() -> bool:
    """Tell whether the person allowed the lab to install things on this machine."""
    return os.environ.get("LAB_INSTALL") == "1"


def demanded() -> bool:
    """Tell whether a missing lab is a failure here and not merely a gap: continuous integration leaves nothing out."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def _os_release() -> str:
    path = Path("/etc/os-release")
    return path.read_text() if path.exists() else ""


def _apt_get(*arguments: str) -> None:
    done = subprocess.run(
        ["apt-get", "-q", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout[-4000:])
        raise LabMissingError(f"apt-get {arguments[0]} ended with {done.returncode}")
