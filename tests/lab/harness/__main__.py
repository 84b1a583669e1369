"""`python -m tests.lab.harness up`: keep the lab up for a person until Ctrl-C.

`prepare` makes what is made once (root file system, engines, with `--vllm` also vLLM) and ends.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from tests.lab.harness import install, mlserver_install, root, vllm_install
from tests.lab.harness.inventory import describe_service, write_inventory
from tests.lab.harness.lab import Lab
from tests.lab.harness.services import LlamaService


def main() -> int:
    """Run the command and return its exit status: 3 if this machine cannot have a lab."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.harness", description="Real hosts on this machine.")
    parser.add_argument("command", choices=["up", "prepare"])
    parser.add_argument("--vllm", action="store_true", help="also install vLLM (2.5 GB)")
    options = parser.parse_args()
    try:
        install.ensure()
    except install.LabMissingError as problem:
        sys.stderr.write(f"no lab: {problem}\n")
        return 3
    engines = (("llama.cpp", root.engine), ("MLServer", mlserver_install.install))
    for what, make in (("root file system", root.root), *engines):
        started = time.monotonic()
        sys.stdout.write(f"{what}: {make()} ({time.monotonic() - started:.1f} s)\n")
    if options.vllm:
        sys.stdout.write(f"vLLM: {vllm_install.install()}\n")
    return _up() if options.command == "up" else 0


def _up() -> int:
    # However it is told to end, the hosts go first; also where the shell started it with Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with Lab() as lab:
        hosts = lab.up("h1", "h2", "c1")
        services = [LlamaService(host, size="medium") for host in hosts[:2]]
        for service in services:
            service.install()
        prompts = "".join(f'{{"prompt": "Tell me story number {number}", "max_tokens": 32}}\n' for number in range(64))
        path = write_inventory(
            lab.folder / "inventory",
            hosts[:2],
            others=hosts[2:],
            services={"chat": describe_service(services[0])},
            workloads={"chat.jsonl": prompts},
        )
        sys.stdout.write(f"inventory: {path}\n")
        for host in hosts:
            sys.stdout.write(f"{host.name}: {' '.join(host.ssh_command())}\n")
        for service in services:
            sys.stdout.write(f"{service.host.name}: {service.unit} at {service.url}\n")
        sys.stdout.write("Ctrl-C stops the lab and throws its hosts away.\n")
        sys.stdout.flush()
        try:
            signal.pause()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
