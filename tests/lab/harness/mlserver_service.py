"""The real MLServer as a service on a host of the lab: a model of our own, settings.json and an environment file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.lab.desk import wait_for
from tests.lab.harness import mlserver_install
from tests.lab.harness.hosts import LabHost

#: One weight for each of four numbers, read from the model's folder: y = x . w, written as MLServer wants its models.
MODEL = """import asyncio
import json
import pathlib

import numpy
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Linear(MLModel):
    async def load(self) -> bool:
        path = pathlib.Path(__file__).with_name("weights.json")
        self._weights = numpy.array(json.loads(path.read_text()), dtype="float32")
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        rows = NumpyCodec.decode_input(payload.inputs[0])
        await asyncio.sleep(0.4)  # stands for the work of a real model, beside which a busy client is not late
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output("y", rows @ self._weights)])
"""

DESCRIBED = """version: 1
service: {name}
class: interactive
instances: {{group: gpu, each: {{endpoint: "http://127.0.0.1:{port}"}}}}
engine:
  generic:
    ready: "GET /v2/health/ready 200"
    answer:
      protocol: kserve_v2
      inputs: [{{name: x, shape: [1, 4], datatype: FP32, data: [1, 2, 3, 4]}}]
    settings:
      debug: {{key: debug, type: bool}}
    metrics:
      page: ":{metrics_port}/metrics"
      requests_ok: model_infer_request_success_total
      requests_failed: model_infer_request_failure_total
manager: {{systemd: {{unit: {unit}}}}}
config:
  - {{file: {settings_file}, format: json}}
  - {{file: {env_file}, format: env}}
model: {{path: {folder}, name: {name}}}
conditions: {{workload: workloads/{name}.jsonl, levels: {{normal: 4 streams}}}}
ready: {{deadline: 60s}}
limits: {{load_on_live: true}}
"""


@dataclass
class MlserverService:
    """One MLServer on one host, pinned to the engines' core."""

    engine: ClassVar[str] = "generic"
    host: LabHost
    name: str = "iris"
    port: int = 8090
    metrics_port: int = 8092

    @property
    def unit(self) -> str:
        """The name of the systemd unit."""
        return f"mlserver-{self.name}.service"

    @property
    def unit_file(self) -> str:
        """The unit's own file on the host."""
        return f"/etc/systemd/system/{self.unit}"

    @property
    def folder(self) -> str:
        """The model's folder, in which MLServer also looks for its own settings."""
        return f"/srv/mlserver/{self.name}"

    @property
    def settings_file(self) -> str:
        """MLServer's own settings."""
        return f"{self.folder}/settings.json"

    @property
    def env_file(self) -> str:
        """The environment file the unit reads."""
        return f"/etc/mlserver/{self.name}.env"

    @property
    def described(self) -> str:
        """The text of services/NAME.yml."""
        return DESCRIBED.format(
            name=self.name, port=self.port, metrics_port=self.metrics_port, unit=self.unit, folder=self.folder,
            settings_file=self.settings_file, env_file=self.env_file,
        )  # fmt: skip

    @property
    def workload(self) -> str:
        """Requests of one to eight rows."""
        return "".join(json.dumps(_request(number)) + "\n" for number in range(12))

    def install(self) -> None:
        """Write model, settings, environment and unit, start it and wait until it answers."""
        settings = {
            "host": "127.0.0.1", "http_port": self.port, "grpc_port": self.port + 1, "metrics_port": self.metrics_port,
            "metrics_dir": "/var/lib/mlserver", "parallel_workers": 0, "debug": True,
        }  # fmt: skip
        model = {"name": self.name, "implementation": "linear.Linear"}
        for path, text in (
            (self.settings_file, json.dumps(settings, indent=2) + "\n"),
            (f"{self.folder}/model-settings.json", json.dumps(model) + "\n"),
            (f"{self.folder}/linear.py", MODEL),
            (f"{self.folder}/weights.json", "[0.1, 0.2, 0.3, 0.4]\n"),
            (self.env_file, "OMP_NUM_THREADS=1\n"),
            (self.unit_file, self.unit_text()),
        ):
            self.host.write_file(path, text)
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "start", self.unit])
        wait_for(self.serves, f"{self.unit} serves", 60)

    def unit_text(self) -> str:
        """The unit file; bytecode would be a change of the model's folder, and the folder is not the service's own."""
        program = mlserver_install.FOLDER / "bin" / "mlserver"
        return (
            f"[Unit]\nDescription=MLServer {self.name}\nAfter=network.target\n\n"
            f"[Service]\nUser=llm\nStateDirectory=mlserver\nWorkingDirectory=/var/lib/mlserver\nCPUAffinity=0\n"
            f"EnvironmentFile=-{self.env_file}\nExecStart={program} start {self.folder}\nTimeoutStopSec=15\n\n"
            "[Install]\nWantedBy=multi-user.target\n"
        )

    def infer(self) -> Any:
        """The answer to one row of four ones, asked from inside the host; None: there is none."""
        script = (
            "import sys,urllib.request as u\n"
            "ask=u.Request(sys.argv[1],sys.argv[2].encode(),{'Content-Type':'application/json'})\n"
            "sys.stdout.write(u.urlopen(ask,timeout=5).read().decode())"
        )
        row = {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 1, 1, 1]}]}
        url = f"http://127.0.0.1:{self.port}/v2/models/{self.name}/infer"
        done = self.host.run(["python3", "-c", script, url, json.dumps(row)], check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def serves(self) -> bool:
        """Whether it gives the right answer."""
        answer = self.infer()
        return answer is not None and abs(answer["outputs"][0]["data"][0] - 1.0) < 0.001

    def settings(self) -> dict[str, Any]:
        """What stands in its settings.json."""
        found: dict[str, Any] = json.loads(self.host.read_file(self.settings_file))
        return found

    def uninstall(self) -> None:
        """Stop it and remove all files, and what changectl keeps about the host."""
        self.host.run(["systemctl", "stop", self.unit], check=False)
        self.host.run(["rm", "-rf", "--", self.unit_file, self.folder, self.env_file, "/var/lib/changectl"])
        self.host.run(["systemctl", "daemon-reload"])
        self.host.run(["systemctl", "reset-failed"], check=False)


def _request(number: int) -> dict[str, Any]:
    rows = 1 + number % 8
    data = [round(0.1 * (number + place), 1) for place in range(4 * rows)]
    return {"id": f"rows-{number}", "inputs": [{"name": "x", "shape": [rows, 4], "datatype": "FP32", "data": data}]}
