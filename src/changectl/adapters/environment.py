"""What of the caller's environment Ansible may see: an allow-list, so that no stray secret reaches a job or a host."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

# What ssh, proxies, vaults and terminals need; docs/reference/environment.md lists them for operators.
ALLOWED = (
    "HOME", "USER", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "LANG",
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "KRB5CCNAME",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
    "ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST", "ANSIBLE_PRIVATE_KEY_FILE",
    "ANSIBLE_REMOTE_USER", "ANSIBLE_ROLES_PATH", "ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_INVENTORY_ENABLED",
    "ANSIBLE_SSH_ARGS", "ANSIBLE_SSH_COMMON_ARGS", "ANSIBLE_SSH_EXTRA_ARGS", "ANSIBLE_REMOTE_PORT",
    "ANSIBLE_SSH_CONTROL_PATH_DIR",
    "ANSIBLE_TRANSPORT", "ANSIBLE_PYTHON_INTERPRETER", "ANSIBLE_BECOME", "ANSIBLE_BECOME_USER",
    "ANSIBLE_BECOME_PASSWORD_FILE", "CHANGECTL_HOST_DIR",
)  # fmt: skip


SOCKET_PATH = 107  # bytes of a path to a Unix socket, man 7 unix
# Bytes that Ansible (a short digest) and ssh (a name until it listens) put behind the folder of a socket.
SOCKET_NAME = 1 + 10 + 1 + 16


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of `environ`, with a locale that Ansible accepts."""
    kept = {name: environ[name] for name in ALLOWED if name in environ}
    kept["LC_ALL"] = "C.UTF-8"
    return kept


def for_ansible(environ: Mapping[str, str], playbooks: Path, python: Path) -> dict[str, str]:
    """The environment of an Ansible job that finds our module and host program, and checks host keys.

    Args:
        environ: the caller's environment.
        playbooks: the folder with our plays, library/ and module_utils/.
        python: the interpreter changectl runs on; its folder comes first in PATH, so that its Ansible is used.
    """
    environment = allowed(environ)
    environment.update(_found_from_here(environment))
    environment.update(_short_sockets(environment))
    environment["PATH"] = f"{python.parent}:{environment.get('PATH', '/usr/bin:/bin')}"
    environment.update(
        ANSIBLE_LIBRARY=str(playbooks / "library"),
        ANSIBLE_MODULE_UTILS=str(playbooks / "module_utils"),
        ANSIBLE_HOST_KEY_CHECKING="True",  # ansible-runner switches it off where it is not set
        ANSIBLE_PIPELINING="True",
        ANSIBLE_RETRY_FILES_ENABLED="False",
        ANSIBLE_NO_TARGET_SYSLOG="True",  # a module's arguments may hold what a template made of a vault variable
        ANSIBLE_NOCOLOR="True",
        ANSIBLE_LOCALHOST_WARNING="False",
        ANSIBLE_INVENTORY_UNPARSED_FAILED="True",
        PYTHONWARNINGS="ignore",
    )
    return environment


def _short_sockets(environment: Mapping[str, str]) -> dict[str, str]:
    """Another folder for the sockets of ssh's shared connections, where those under a long home can't be made.

    Without it ssh ends with "too long for Unix domain socket", and every host of such a user is unreachable.
    """
    name = "ANSIBLE_SSH_CONTROL_PATH_DIR"
    usual = Path(environment.get("HOME") or Path.home(), ".ansible", "cp")
    if name in environment or len(str(usual).encode()) + SOCKET_NAME <= SOCKET_PATH:
        return {}
    return {name: str(_own_folder(str(usual)))}


@functools.cache
def _own_folder(usual: str) -> Path:
    """A folder under /tmp that nobody else can put a socket into: another's would hear what Ansible sends to hosts.

    It is another one for each `usual` folder: Ansible names a socket after host, port and user only, and under
    another home the same host may be reached another way.
    """
    mark = hashlib.sha256(usual.encode()).hexdigest()[:8]
    folder = Path(f"/tmp/changectl-{os.getuid()}-{mark}")  # noqa: S108  # the shortest place; whose it is is looked at
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="changectl-cp-", dir=folder.parent))


def _found_from_here(environment: Mapping[str, str]) -> dict[str, str]:
    """What Ansible would find from the working folder, named in full: its jobs run in other folders than ours."""
    found = {}
    here = Path.cwd()
    for name in ("ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_BECOME_PASSWORD_FILE"):
        if name in environment:
            found[name] = str(here / Path(environment[name]).expanduser())
    # As Ansible itself: a configuration in a folder that everybody can write to is not trusted.
    if "ANSIBLE_CONFIG" not in found and (here / "ansible.cfg").is_file() and not here.stat().st_mode & 0o002:
        found["ANSIBLE_CONFIG"] = str(here / "ansible.cfg")
    return found
