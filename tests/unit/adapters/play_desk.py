"""An operator's desk on this machine for plays: inventory, configuration file, state folder."""

from __future__ import annotations

import base64
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.adapters.shipped import playbooks_folder
from changectl.core.ports import HostAddress
from changectl_host import dispatch, system

SECRET = "correct-horse-battery-staple"
HERE = HostAddress("here")


@dataclass
class Desk:
    """An inventory of this machine, a configuration file, a state folder, and the plays."""

    folder: Path
    plays: RunnerPlaybooks = field(init=False)

    def __post_init__(self) -> None:
        self.source = self.folder / "hosts.yml"
        self.inventory(ansible_connection="local", ansible_python_interpreter=sys.executable, vault_key=SECRET)
        self.host_folder = self.folder / "h"  # where this host's lease lies: never the machine's own place
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SOME_API_KEY": SECRET,
                   "CHANGECTL_HOST_DIR": str(self.host_folder)}  # fmt: skip
        self.plays = RunnerPlaybooks(self.source, playbooks_folder(), environ=environ)
        self.config = self.folder / "etc" / "a.conf"
        self.config.parent.mkdir()
        self.config.write_bytes(b"1")
        self.common = {"changectl_run": "R-1", "changectl_generation": 1, "changectl_state_dir": str(self.folder / "s")}

    def inventory(self, **variables: Any) -> None:
        listed = "".join(f"      {name}: {value}\n" for name, value in variables.items())
        self.source.write_text(f"all:\n  hosts:\n    here:\n{listed}    there: {{ansible_connection: local}}\n")

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        return dispatch(name, {"run": "R-1", "generation": 1, "state_dir": str(self.folder / "s"), **args})

    def lease(self, **other: Any) -> dict[str, Any]:
        """Take the lease without which nothing may be changed; this process has to look at our host folder, too."""
        assert os.environ["CHANGECTL_HOST_DIR"] == str(self.host_folder)
        return self.call("lease", **{"nonce": "desk", "seconds": 600, "owner": "kim", "controller": "desk", **other})

    def writes(self, new: bytes) -> list[dict[str, str]]:
        self.call("stage", sha256=system.sha256(new), content=base64.b64encode(new).decode())
        old = system.sha256(self.config.read_bytes())
        return [{"path": str(self.config), "expect": old, "staged": system.sha256(new)}]

    def own(self, name: str, text: str) -> RunnerPlaybooks:
        folder = self.folder / "plays"
        folder.mkdir()
        (folder / f"{name}.yml").write_text(text)
        return replace(self.plays, playbooks=folder)

    def processes(self) -> list[int]:
        """Everything that Ansible runs for this desk."""
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if str(self.source).encode() in read(path)
        ]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
