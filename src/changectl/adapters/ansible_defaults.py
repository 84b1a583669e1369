"""Connection defaults that Ansible takes from its environment and its configuration file: the door uses the same.

Only what connecting needs; the order of places and the names are Ansible's (ansible-config documents them).
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

# Host variable -> (environment variables, section and key of ansible.cfg).
_SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "ansible_user": (("ANSIBLE_REMOTE_USER",), ("defaults", "remote_user")),
    "ansible_port": (("ANSIBLE_REMOTE_PORT",), ("defaults", "remote_port")),
    "ansible_private_key_file": (("ANSIBLE_PRIVATE_KEY_FILE",), ("defaults", "private_key_file")),
    "ansible_connection": (("ANSIBLE_TRANSPORT",), ("defaults", "transport")),
    "ansible_python_interpreter": (("ANSIBLE_PYTHON_INTERPRETER",), ("defaults", "interpreter_python")),
    "ansible_become": (("ANSIBLE_BECOME",), ("privilege_escalation", "become")),
    "ansible_become_user": (("ANSIBLE_BECOME_USER",), ("privilege_escalation", "become_user")),
    "ansible_ssh_args": (("ANSIBLE_SSH_ARGS",), ("ssh_connection", "ssh_args")),
    "ansible_ssh_common_args": (("ANSIBLE_SSH_COMMON_ARGS",), ("ssh_connection", "ssh_common_args")),
    "ansible_ssh_extra_args": (("ANSIBLE_SSH_EXTRA_ARGS",), ("ssh_connection", "ssh_extra_args")),
}
_PATHS = frozenset({"ansible_private_key_file"})  # in the file they are relative to the file


def defaults(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Host variables that the environment and ansible.cfg set for every host; an inventory's own come before them.

    Args:
        environ: the caller's environment.
        folder: the working folder, whose ansible.cfg counts unless everybody may write there (as for Ansible itself).
    """
    file = _file(environ, folder)
    settings = _read(file)
    found = {}
    for variable, (names, (section, key)) in _SOURCES.items():
        given = next((environ[name] for name in names if environ.get(name)), None)
        written = settings.get(section, key, fallback="").strip()
        if given is not None:
            found[variable] = given
        elif written:
            found[variable] = str(file.parent / Path(written).expanduser()) if variable in _PATHS else written
    return found


def _file(environ: Mapping[str, str], folder: Path) -> Path:
    """The one configuration file that counts; the last candidate when there is none."""
    named = environ.get("ANSIBLE_CONFIG")
    if named:
        path = Path(named).expanduser()
        return path / "ansible.cfg" if path.is_dir() else path
    candidates = [] if folder.stat().st_mode & 0o002 else [folder / "ansible.cfg"]
    candidates += [Path(environ.get("HOME", "/root")) / ".ansible.cfg", Path("/etc/ansible/ansible.cfg")]
    return next((path for path in candidates if path.is_file()), candidates[-1])


def _read(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=(";",), strict=False)
    try:
        parser.read(file)
    except (configparser.Error, UnicodeDecodeError):
        return configparser.ConfigParser()  # Ansible itself complains about it, with the line
    return parser
