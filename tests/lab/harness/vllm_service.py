"""The real vLLM as a service on a host of the lab. One at a time: it takes 1.6 GB and both cores while it starts."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tests.lab.harness import vllm_install
from tests.lab.harness.hosts import LabError, LabHost
from tests.lab.harness.paths import CACHE, digest_of, made_once

WRITER = Path(__file__).with_name("hf_model.py")
#: Nothing is fetched, nothing is reported, and all sockets stay on loopback.
QUIET = {
    "HOME": "/var/lib/vllm",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
}
FLAGS = {
    "--dtype": "float32",
    "--max-model-len": "1024",
    "--max-num-seqs": "4",
    "--kv-cache-memory-bytes": "64M",
}
#: Engine and worker spin while they wait; beside the API server on one core they make every latency noise. systemd pins
#: all of a unit's processes alike, so this waits for the engine, and moves it to core 0 and the server to the last one.
_PIN = """#!/usr/bin/python3
import os, subprocess, sys, time, urllib.request

port, deadline = sys.argv[1], time.monotonic() + 180
while time.monotonic() < deadline:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
        break
    except OSError:
        time.sleep(0.2)
last = os.cpu_count() - 1
with open("/proc/self/cgroup") as file:
    own = file.read()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cgroup") as file:
            if file.read() != own:
                continue
        with open(f"/proc/{pid}/cmdline") as file:
            core = 0 if "VLLM::" in file.read() else last
    except OSError:
        continue
    subprocess.run(["taskset", "-apc", str(core), pid], stdout=subprocess.DEVNULL)
"""


def model() -> Path:
    """Return the tiny model's folder, written once with vLLM's own interpreter; vLLM must be installed."""
    target = CACHE / f"hf-model-{digest_of(WRITER.read_text())}"
    python = str(vllm_install.FOLDER / "bin" / "python")
    return made_once(target, lambda folder: _write_model(python, folder))


def _write_model(python: str, folder: Path) -> None:
    subprocess.run([python, str(WRITER), str(folder)], check=True)


@dataclass
class VllmService:
    """One vLLM on one host; `flags` and `environment` are added to the defaults above, and win."""

    engine: ClassVar[str] = "vllm"
    host: LabHost
    name: str = "words"
    port: int = 8100
    flags: Mapping[str, str] = field(default_factory=dict)
    switches: Sequence[str] = ("--enforce-eager",)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The name of the systemd unit."""
        return f"vllm-{self.name}.service"

    @property
    def unit_file(self) -> str:
        """The unit's own file on the host."""
        return f"/etc/systemd/system/{self.unit}"

    @property
    def env_file(self) -> str:
        """The environment file the unit reads."""
        return f"/etc/vllm/{self.name}.env"

    @property
    def model(self) -> str:
        """The model's folder on the host."""
        return f"/srv/models/{self.name}"

    def install(self, *, wait: bool = True) -> None:
        """Write model, environment and unit, start it, and (with `wait`) wait until it answers."""
        for path in model().iterdir():
            self.host.write_file(f"{self.model}/{path.name}", path.read_bytes(), mode="0644", owner="root:llm")
        variables = "".join(f"{key}={value}\n" for key, value in self.environment.items())
        self.host.write_file(self.env_file, variables, mode="0640", owner="root:llm")
        self.host.write_file("/usr/local/bin/pin-vllm", _PIN, mode="0755")
        self.host.run(["ln", "-sfn", str(vllm_install.FOLDER / "bin" / "vllm"), "/usr/local/bin/vllm"])
        self.host.write_file(self.unit_file, self.unit_text())
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "start", self.unit])
        if wait:
            self.wait_ready()

    def unit_text(self) -> str:
        """Return the unit file."""
        words = [f"/usr/local/bin/vllm serve {self.model}", f"--served-model-name {self.name}"]
        words += [f"--host 0.0.0.0 --port {self.port}"]
        words += [f"{flag} {value}" for flag, value in {**FLAGS, **self.flags}.items()]
        command = " \\\n  ".join([*words, *self.switches])
        quiet = " ".join(f"{key}={value}" for key, value in QUIET.items())
        return (
            f"[Unit]\nDescription=vLLM {self.name}\nAfter=network.target\n\n"
            f"[Service]\nUser=llm\nStateDirectory=vllm\nWorkingDirectory=/var/lib/vllm\nEnvironment={quiet}\n"
            f"EnvironmentFile=-{self.env_file}\nExecStart={command}\n"
            f"ExecStartPost=-+/bin/sh -c '/usr/local/bin/pin-vllm {self.port} &'\nTimeoutStopSec=15\n\n"
            "[Install]\nWantedBy=multi-user.target\n"
        )

    def wait_ready(self, timeout: float = 180) -> float:
        """Wait until a completion comes back and return the seconds it took; raise LabError with the log otherwise."""
        started = time.monotonic()
        while time.monotonic() - started < timeout:
            if (
                self.host.run(self._asking("/health"), check=False).returncode == 0
                and len(self.complete(tokens=2)) == 2
            ):
                return time.monotonic() - started
            if self.host.run(["systemctl", "is-failed", self.unit], check=False).returncode == 0:
                break
            time.sleep(0.25)
        raise LabError(f"{self.unit} on {self.host.name} does not answer: {self.log()}")

    def wait_pinned(self, timeout: float = 20) -> None:
        """Wait until the engine's processes are on core 0, before anything is measured; raise LabError otherwise."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            cores = [line.split()[1] for line in self.processes() if "VLLM::" in line]
            if cores and set(cores) == {"0"}:
                return
            time.sleep(0.2)
        raise LabError(f"{self.unit} is not pinned: {self.processes()}")

    def complete(self, prompt: str = "Hello", tokens: int = 8) -> str:
        """Return what the model adds to the prompt, asked from inside the host over loopback."""
        body = json.dumps({"model": self.name, "prompt": prompt, "max_tokens": tokens})
        answer = json.loads(self.host.run([*self._asking("/v1/completions"), body]).stdout)
        return str(answer["choices"][0]["text"])

    def get(self, path: str) -> Any:
        """Return the JSON answer of a GET from inside the host over loopback."""
        return json.loads(self.host.run(self._asking(path)).stdout)

    def text(self, path: str) -> str:
        """Return the text of a GET from inside the host over loopback, for example the metrics page."""
        return self.host.run(self._asking(path)).stdout

    def log(self) -> str:
        """Return the unit's journal."""
        return self.host.run(["journalctl", "--no-pager", "--lines=300", f"--unit={self.unit}"], check=False).stdout

    def processes(self) -> list[str]:
        """Return `pid affinity title` of everything that runs in the unit's control group."""
        script = (
            'for p in $(cat "/sys/fs/cgroup/systemd/system.slice/$1/cgroup.procs" '
            '2>/dev/null || cat "/sys/fs/cgroup/system.slice/$1/cgroup.procs"); do '
            'echo "$p $(taskset -pc $p | sed "s/.*: //") $(tr "\\0" " " < /proc/$p/cmdline)"; done'
        )
        return self.host.run(["sh", "-c", script, "sh", self.unit]).stdout.splitlines()

    def uninstall(self) -> None:
        """Stop the unit, the whole control group of it, and remove its files and what changectl keeps on the host."""
        self.host.run(["systemctl", "stop", self.unit], check=False, timeout=60)
        paths = [self.unit_file, f"{self.unit_file}.d", self.env_file, self.model, "/var/lib/changectl"]
        self.host.run(["rm", "-rf", "--", *paths])
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "reset-failed"], check=False)

    def _asking(self, path: str) -> list[str]:
        script = (
            "import sys,urllib.request as u\n"
            "data=sys.argv[2].encode() if len(sys.argv)>2 else None\n"
            "head={'Content-Type':'application/json'}\n"
            "sys.stdout.write(u.urlopen(u.Request(sys.argv[1],data,head),timeout=60).read().decode())"
        )
        return ["python3", "-c", script, f"http://127.0.0.1:{self.port}{path}"]
