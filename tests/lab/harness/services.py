"""A llama.cpp service on a host of the lab, laid out as operators do: unit, environment file, model, own user."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from tests.lab.harness.hosts import LabError, LabHost

from changectl.demo.tinymodel import write_gguf

USER = "llm"
#: The engine's core; clients belong on another one, or latencies are noise.
ENGINE_CORE = 0


@dataclass
class LlamaService:
    """One engine on one host. `flags` are llama-server's, without model, alias, host and port.

    The environment file's path is a symbolic link to a file that belongs to the service's user, with mode 0640, an
    extended attribute and an access control list: what an edit must keep.
    """

    engine: ClassVar[str] = "llamacpp"
    host: LabHost
    name: str = "chat"
    port: int = 8000
    flags: Mapping[str, str] = field(
        default_factory=lambda: {"--ctx-size": "4096", "--parallel": "4", "--threads": "1"}
    )
    switches: Sequence[str] = ("--metrics",)
    environment: Mapping[str, str] = field(default_factory=lambda: {"LLAMA_ARG_THREADS_HTTP": "4"})
    unit_lines: Sequence[str] = ()
    size: str = "small"

    @property
    def unit(self) -> str:
        """The name of the systemd unit."""
        return f"llama-{self.name}.service"

    @property
    def unit_file(self) -> str:
        """The unit's own file on the host."""
        return f"/etc/systemd/system/{self.unit}"

    @property
    def env_file(self) -> str:
        """The environment file as the unit names it: a symbolic link."""
        return f"/etc/llama/{self.name}.env"

    @property
    def env_target(self) -> str:
        """The file the link leads to."""
        return f"/srv/llm/config/{self.name}.env"

    @property
    def model(self) -> str:
        """The model's file on the host."""
        return f"/srv/models/{self.name}.gguf"

    @property
    def url(self) -> str:
        """The service as other hosts and this machine reach it; inside the host it also listens on loopback."""
        return f"http://{self.host.address}:{self.port}"

    def install(self) -> None:
        """Write model, configuration and unit, start the unit, and wait until the engine answers."""
        with TemporaryDirectory() as folder:
            model = Path(folder) / "model.gguf"
            write_gguf(model, self.size, name=self.name)
            self.host.write_file(self.model, model.read_bytes(), mode="0640", owner=f"root:{USER}")
        variables = "".join(f"{key}={value}\n" for key, value in self.environment.items())
        text = f"# Settings of {self.name}; read by {self.unit}\n{variables}"
        self.host.write_file(self.env_target, text, mode="0640", owner=f"{USER}:{USER}")
        self.host.run(["setfattr", "-n", "user.origin", "-v", "operations handbook 7", self.env_target])
        self.host.run(["setfacl", "-m", "u:ops:r", self.env_target])
        self.host.run(["mkdir", "-p", "/etc/llama"])
        self.host.run(["ln", "-sfn", self.env_target, self.env_file])
        self.host.write_file(self.unit_file, self.unit_text())
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "enable", "--quiet", "--now", self.unit])
        self.wait_ready()

    def unit_text(self) -> str:
        """Return the unit file."""
        words = [f"--model {self.model}", f"--alias {self.name}", f"--host 0.0.0.0 --port {self.port}"]
        words += [f"{flag} {value}" for flag, value in self.flags.items()]
        command = " \\\n  ".join(["/usr/local/bin/llama-server", *words, *self.switches])
        extra = "".join(f"{line}\n" for line in self.unit_lines)
        return (
            f"[Unit]\nDescription=llama.cpp server {self.name}\nAfter=network.target\n\n"
            f"[Service]\nUser={USER}\nEnvironmentFile=-{self.env_file}\nExecStart={command}\n"
            f"CPUAffinity={ENGINE_CORE}\nRestart=on-failure\nRestartSec=1\nTimeoutStopSec=20\n{extra}\n"
            "[Install]\nWantedBy=multi-user.target\n"
        )

    def wait_ready(self, timeout: float = 20) -> None:
        """Wait until the engine says that it is healthy; raise LabError with its log if it does not in time."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            done = self.host.run(self._asking("/health"), check=False)
            if done.returncode == 0 and json.loads(done.stdout) == {"status": "ok"}:
                return
            time.sleep(0.05)
        raise LabError(f"{self.unit} on {self.host.name} is not healthy: {self.log()}")

    def get(self, path: str) -> Any:
        """Return the JSON answer of a GET from inside the host over loopback."""
        return json.loads(self.host.run(self._asking(path)).stdout)

    def text(self, path: str) -> str:
        """Return the text of a GET from inside the host over loopback, for example the metrics page."""
        return self.host.run(self._asking(path)).stdout

    def complete(self, prompt: str = "Hello", tokens: int = 8) -> str:
        """Return what the model adds to the prompt, asked from inside the host over loopback."""
        body = json.dumps({"prompt": prompt, "max_tokens": tokens})
        answer = json.loads(self.host.run([*self._asking("/v1/completions"), body]).stdout)
        return str(answer["choices"][0]["text"])

    def pid(self) -> int:
        """Return the main process's id as the host counts; 0 if it does not run."""
        return int(self.host.run(["systemctl", "show", "--value", "--property=MainPID", self.unit]).stdout)

    def argv(self) -> list[str]:
        """Return the running process's arguments."""
        return self.host.read_file(f"/proc/{self.pid()}/cmdline").decode().rstrip("\0").split("\0")

    def log(self) -> str:
        """Return the end of the unit's journal."""
        return self.host.run(["journalctl", "--no-pager", "--lines=40", f"--unit={self.unit}"], check=False).stdout

    def stat(self, path: str) -> str:
        """Return what must survive an edit of a file: digest, mode, owner, all extended attributes."""
        script = 'sha256sum < "$1"; stat -L -c "%a %U:%G" "$1"; getfattr -d -m - -e hex --absolute-names "$1"'
        return self.host.run(["sh", "-c", script, "sh", path]).stdout

    def uninstall(self) -> None:
        """Stop the unit and remove all files of the service, and what changectl keeps about the host."""
        self.host.run(["systemctl", "disable", "--quiet", "--now", self.unit], check=False)
        drop_ins = f"{self.unit_file}.d"
        paths = [self.unit_file, drop_ins, self.env_file, self.env_target, self.model, "/var/lib/changectl"]
        self.host.run(["rm", "-rf", "--", *paths])
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "reset-failed"], check=False)

    def _asking(self, path: str) -> list[str]:
        script = (
            "import sys,urllib.request as u\n"
            "data=sys.argv[2].encode() if len(sys.argv)>2 else None\n"
            "sys.stdout.write(u.urlopen(sys.argv[1],data,timeout=30).read().decode())"
        )
        return ["python3", "-c", script, f"http://127.0.0.1:{self.port}{path}"]
