"""A real llama.cpp server on this machine under the `command` manager, and a project that changes it in seconds."""

from __future__ import annotations

import hashlib
import os
import shlex
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import observe
from tests.faults.checker import Expected, Reach

from changectl.demo import llama_server
from changectl.demo.tinymodel import write_gguf

REPOSITORY = Path(__file__).resolve().parents[2]
LEASE = 3.0  # seconds
LOAD = 1.0  # seconds until this engine answers; 0.1 on an idle machine
HERE = "{ansible_connection: local, ansible_host: 127.0.0.1, ansible_python_interpreter: %s}"
PROMPTS = "".join(
    f'{{"id": "p{number}", "prompt": "Story {number} begins", "max_tokens": 3}}\n' for number in range(10)
)
REQUESTS = 20  # the least that a level is judged by
STREAMS = 2
ANY_FIGURES = "{ttft_user: <= 60s, tpot: <= 10s, e2e_user: <= 60s, rps_ok: '>= 0.01 rps', out_tok_s: '>= 0.01 tok/s'}"
NO_FIGURES = "{ttft_user: <= 60s, tpot: <= 10s, e2e_user: <= 60s, rps_ok: '>= 100000 rps', out_tok_s: '>= 0.01 tok/s'}"
OLD_SLOTS, NEW_SLOTS = "2", "4"
#: What a plan changes: setting, old and new value. The last is valid, but not with so small a model: the engine ends.
CHANGES = {
    "kept": ("parallel", OLD_SLOTS, NEW_SLOTS),
    "reverted": ("parallel", OLD_SLOTS, NEW_SLOTS),
    "dying": ("cache-type-k", "f16", "q8_0"),
}
#: The engine yields to the load generator, which has to keep up for a measurement to count, also on a busy machine.
_RUN_CHAT = """#!/bin/sh
cd {folder} || exit 1
. ./chat.env
case "$1" in
start)
    date +%s.%N >>starts
    nohup nice -n 19 {python} {server} --model model.gguf --alias chat --host 127.0.0.1 --port {port} --metrics $ARGS \\
        >>server.log 2>&1 </dev/null &
    echo $! >chat.pid
    ;;
stop) kill "$(cat chat.pid)" ;;
esac
"""
_SERVICE = """version: 1
service: chat
class: interactive
instances:
  - {{host: here, endpoint: "http://127.0.0.1:{port}"}}
engine: llamacpp
manager: {{command: {{start: "./run-chat start", stop: "./run-chat stop", cwd: "{folder}",
                     pid: {{file: "{folder}/chat.pid"}}}}}}
config:
  - {{file: "{folder}/chat.env", format: env, at: ARGS, then: flags}}
model: {{path: "{folder}/model.gguf", name: chat}}
log_file: "{folder}/server.log"
state_dir: "{state}"
conditions: {{workload: workloads/chat.jsonl, levels: {{busy: {streams} streams}}, requests: {requests}}}
ready: {{deadline: 20s}}
limits: {{load_on_live: true}}
lease: {lease}
"""
_PLAN = """version: 1
service: chat
reason: a fault is coming
effort: quick
steps:
  - change: {{parameter: {{name: {name}, from: {old}, to: {new}}}}}
    expect: neutral
    accept: {accept}
    on_inconclusive: {policy}
"""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class LocalBench:
    """One service and its project below `folder`; three folders, so that each can be a small disk of its own."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def service(self) -> Path:
        """The engine's folder: configuration, model, log, count of starts."""
        return self.folder / "service"

    @property
    def state(self) -> Path:
        """The state folder on the host."""
        return self.folder / "state"

    @property
    def project(self) -> Path:
        """The operator's project, with the record in it."""
        return self.folder / "project"

    @property
    def database(self) -> Path:
        """The journal."""
        return self.project / ".changectl" / "changectl.db"

    @property
    def settings(self) -> Path:
        """The file that changes write."""
        return self.service / "chat.env"

    def lay_out(self) -> LocalBench:
        """Write everything; nothing runs yet."""
        for place in (self.service, self.project / "services", self.project / "workloads"):
            place.mkdir(parents=True, exist_ok=True)
        values = {"folder": str(self.service), "port": self.port, "state": str(self.state), "streams": STREAMS,
                  "requests": REQUESTS, "lease": f"{LEASE:g}s"}  # fmt: skip
        script = self.service / "run-chat"
        words = {"python": sys.executable, "server": llama_server.__file__, "folder": str(self.service)}
        script.write_text(_RUN_CHAT.format(port=self.port, **{key: shlex.quote(word) for key, word in words.items()}))
        script.chmod(0o755)
        write_gguf(self.service / "model.gguf", "small", name="chat")
        self.settings.write_text(settings_text())
        _adorn(self.settings)
        (self.project / "hosts.yml").write_text(f"all: {{hosts: {{here: {HERE % sys.executable}}}}}\n")
        (self.project / "services" / "chat.yml").write_text(_SERVICE.format(**values))
        (self.project / "workloads" / "chat.jsonl").write_text(PROMPTS)
        for plan, (name, old, new) in CHANGES.items():
            accept, policy = (ANY_FIGURES, "keep") if plan == "kept" else (NO_FIGURES, "revert")
            text = _PLAN.format(name=name, old=old, new=new, accept=accept, policy=policy)
            (self.project / f"{plan}.yml").write_text(text)
        return self

    def start(self) -> None:
        """Start the engine and wait until it answers; raises RuntimeError with its log when it does not."""
        subprocess.run(["./run-chat", "start"], cwd=self.service, check=True, start_new_session=True)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.reach().look()["answer"]["ok"]:
                return
            time.sleep(0.05)
        raise RuntimeError(f"the engine does not answer: {(self.service / 'server.log').read_text()[-2000:]}")

    def reach(self) -> Reach:
        """How the judge looks at this service."""
        question = {
            "files": [str(self.settings)],
            "needles": ["--alias", "chat", "--port", str(self.port)],
            "endpoint": f"http://127.0.0.1:{self.port}",
            "starts": str(self.service / "starts"),
            "states": sorted({str(self.state), "/var/lib/changectl"}),
        }
        return Reach(question, python=sys.executable)

    def engines(self) -> list[int]:
        """The processes of this engine; nothing is asked of them."""
        return [int(one["pid"]) for one in observe.processes(self.reach().question["needles"], [])]

    def expected(self, plan: str) -> Expected:
        """The two configurations of a plan, as they are before it is applied."""
        saved = self.reach().look()
        name, _, new = CHANGES[plan]
        argv = [str(word) for word in saved["processes"][0]["argv"]]
        argv[argv.index(f"--{name}") + 1] = new
        return Expected(saved, {str(self.settings): sha256(settings_text({name: new}))}, argv)

    def command(self, *words: str, faults: Path | None = None) -> list[str]:
        """The command line of changectl, or of its driver where faults are given."""
        if faults is None:
            return [sys.executable, "-m", "changectl.cli.main", *words]
        return [sys.executable, str(Path(__file__).with_name("driver.py")), str(faults), "--", *words]

    def environment(self) -> Mapping[str, str]:
        """A clean one: nothing of this machine's own configuration reaches the command."""
        paths = [str(REPOSITORY / "src"), str(REPOSITORY / "playbooks" / "module_utils")]
        return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(self.folder),
                "LC_ALL": "C.UTF-8", "PYTHONPATH": ":".join(paths)}  # fmt: skip

    def apply_words(self, plan: str) -> Sequence[str]:
        """The words of `changectl apply` for one of the plans."""
        return ("apply", "-i", "hosts.yml", "--json", f"{plan}.yml")

    def run(self, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run changectl in the project, undisturbed."""
        return subprocess.run(
            self.command(*words), cwd=self.project, env=dict(self.environment()), capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=timeout, check=False,
        )  # fmt: skip


def settings_text(changed: Mapping[str, str] | None = None) -> str:
    """The settings file, with some values replaced."""
    values: dict[str, Any] = {"parallel": OLD_SLOTS, "ctx-size": "2048", "threads": "1", "cache-type-k": "f16"}
    values |= changed or {}
    return f'# what run-chat starts the server with\nARGS="{" ".join(f"--{k} {v}" for k, v in values.items())}"\n'


def sha256(text: str) -> str:
    """The digest of a text's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def _adorn(path: Path) -> None:
    """What an edit must keep: a mode of its own, an attribute, and an access control list where the disk has them."""
    path.chmod(0o640)
    entries = [(1, 6, -1), (2, 4, os.getuid() + 1), (4, 4, -1), (0x10, 4, -1), (0x20, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    for name, value in {"user.origin": b"operations handbook 7", "system.posix_acl_access": acl}.items():
        try:
            os.setxattr(path, name, value)
        except OSError:
            continue  # tmpfs of older kernels, or a user namespace without that user
