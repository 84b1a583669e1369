"""Who answers: the host, its Python, the user, and what kind of machine it is."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
import time
from typing import Any, Dict, Optional

from . import facts, locks, procfs, state
from .version import VERSION


def hello(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call; see the keys below."""
    return {
        "program": VERSION,
        "format": state.FORMAT,
        "python": platform.python_version(),
        "executable": sys.executable,
        "uid": os.geteuid(),
        "user": facts.user_name(os.geteuid()),
        "hostname": socket.gethostname(),
        "boot_id": state.boot_id(),
        "wall_time": time.time(),
        "state_dir": args.get("state_dir") or locks.default_root(),
        "systemd": os.path.isdir("/run/systemd/system"),
        "kubernetes": in_kubernetes(),
        "container": container(),
    }


def in_kubernetes() -> Optional[bool]:
    """Whether this is a pod: its file system is thrown away at the next start, so a change there would not last.

    None: nothing here tells.
    """
    if "KUBERNETES_SERVICE_HOST" in os.environ or os.path.isdir("/var/run/secrets/kubernetes.io"):
        return True
    told = [procfs.read_text(path) for path in ("/proc/1/cgroup", "/proc/self/cgroup", "/proc/self/mountinfo")]
    if not any(told):
        return None
    return any(word in text for text in told for word in ("kubepods", "/kubelet/pods/"))


def container() -> Optional[str]:
    """The kind of container, or None on a machine."""
    named = procfs.parse_environ(procfs.read(1, "environ")).get("container")
    named = named or procfs.read_text("/run/systemd/container").strip()
    if named:
        return named
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    match = re.search(r"docker|containerd|kubepods|lxc", procfs.read_text("/proc/1/cgroup"))
    return match.group(0) if match else None
