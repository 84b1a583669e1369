"""A small server of completions that spoils its start on purpose, by the number of its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.lab.desk import wait_for
from tests.lab.harness.hosts import LabHost

GOOD, DIES_LATER, HOLLOW, STUCK, DIES_AT_ONCE = 4, 11, 12, 13, 14

SERVER = """
import http.server, json, os, sys, threading, time
workers, port = int(sys.argv[2]), int(sys.argv[4])
DIES_LATER, HOLLOW, STUCK, DIES_AT_ONCE = 11, 12, 13, 14
tokens = 0
if workers == DIES_AT_ONCE:
    sys.exit("no room for so many workers")
if workers == STUCK:
    time.sleep(100000)
if workers == DIES_LATER:
    time.sleep(2)
    sys.exit("the second worker does not come up")

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def say(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/metrics":
            self.say(200, "# TYPE stub_tokens_total counter\\nstub_tokens_total %d\\n" % tokens, "text/plain")
        elif self.path == "/v1/models":
            self.say(200, json.dumps({"object": "list", "data": [{"id": "stub", "object": "model"}]}))
        else:
            self.say(200, "{}")

    def do_POST(self):
        global tokens
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if workers == HOLLOW:
            self.say(503, json.dumps({"error": {"message": "the workers are not there yet"}}))
            return
        count = int(asked.get("max_tokens") or 4)
        usage = {"prompt_tokens": 4, "completion_tokens": count, "total_tokens": 4 + count}
        tokens += count
        if not asked.get("stream"):
            choice = {"index": 0, "text": " word" * count, "finish_reason": "length"}
            self.say(200, json.dumps({"model": "stub", "choices": [choice], "usage": usage}))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(count):
            last = "length" if number == count - 1 else None
            self.event(json.dumps({"model": "stub", "choices": [{"index": 0, "text": " word", "finish_reason": last}]}))
            time.sleep(0.002)
        self.event(json.dumps({"model": "stub", "choices": [], "usage": usage}))
        self.event("[DONE]")
        self.wfile.write(b"0\\r\\n\\r\\n")

    def event(self, text):
        data = b"data: " + text.encode() + b"\\n\\n"
        self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(data), data))
        self.wfile.flush()

http.server.ThreadingHTTPServer.daemon_threads = True
http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
"""

DESCRIBED = """version: 1
service: {name}
class: interactive
instances: {{group: gpu, each: {{endpoint: "http://127.0.0.1:{port}"}}}}
engine:
  generic:
    ready: "GET /health 200"
    answer: {{protocol: openai_completions}}
    settings:
      concurrency_limit: {{flag: --workers, type: int}}
    metrics: {{page: /metrics, tokens: stub_tokens_total}}
manager: {{systemd: {{unit: {unit}}}}}
config:
  - {{unit: {unit}, format: flags}}
model: {{path: {model}, name: {name}}}
conditions: {{workload: workloads/{name}.jsonl, levels: {{normal: 4 streams}}}}
ready: {{deadline: {deadline}}}
limits: {{load_on_live: true}}
"""


@dataclass
class StubService:
    """The server as a systemd unit, with a start limit that three starts in ten minutes reach."""

    engine: ClassVar[str] = "generic"
    host: LabHost
    name: str = "stub"
    port: int = 8050
    deadline: str = "20s"
    unit: str = "stub.service"
    unit_file: str = "/etc/systemd/system/stub.service"
    folder: str = "/srv/stub"

    @property
    def model(self) -> str:
        """A file that stands for the model."""
        return f"{self.folder}/model.bin"

    @property
    def described(self) -> str:
        """The text of services/stub.yml."""
        return DESCRIBED.format(
            name=self.name, port=self.port, unit=self.unit, model=self.model, deadline=self.deadline
        )

    def unit_text(self, workers: int = GOOD) -> str:
        """The unit file."""
        return (
            "[Unit]\nDescription=stub\nStartLimitBurst=3\nStartLimitIntervalSec=600\n\n"
            f"[Service]\nExecStart=/usr/bin/python3 {self.folder}/server.py --workers {workers} --port {self.port}\n"
            "Restart=always\nRestartSec=100ms\nTimeoutStopSec=5\n\n[Install]\nWantedBy=multi-user.target\n"
        )

    def install(self) -> StubService:
        """Write everything, start the unit and wait until it serves."""
        self.host.write_file(f"{self.folder}/server.py", SERVER)
        self.host.write_file(self.model, b"weights" * 1000)
        self.host.write_file(self.unit_file, self.unit_text())
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "reset-failed", self.unit], check=False)
        self.host.run(["systemctl", "start", self.unit])
        wait_for(self.serves, "the stub serves", 20)
        return self

    def serves(self) -> bool:
        """Whether it gives a real answer, asked from inside the host."""
        script = (
            "import json,sys,urllib.request as u\n"
            "data=json.dumps({'prompt':'x','max_tokens':2}).encode()\n"
            "sys.stdout.write(u.urlopen(sys.argv[1],data,timeout=5).read().decode())"
        )
        url = f"http://127.0.0.1:{self.port}/v1/completions"
        done = self.host.run(["python3", "-c", script, url], check=False)
        return done.returncode == 0 and '" word word"' in done.stdout

    def shown(self, name: str) -> str:
        """A property of the unit."""
        return self.host.run(["systemctl", "show", "--value", f"--property={name}", self.unit]).stdout.strip()

    def uninstall(self) -> None:
        """Stop it and remove all files, and what changectl keeps about the host."""
        self.host.run(["systemctl", "stop", self.unit], check=False)
        self.host.run(["rm", "-rf", "--", self.unit_file, self.folder, "/var/lib/changectl"])
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "reset-failed"], check=False)
