"""The real MLServer (KServe v2, the Open Inference Protocol) in a cached virtual environment that hosts run read-only.

It needs no accelerator and no compiler: wheels alone, about 330 MB and half a minute, once per machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab.harness.paths import CACHE, made_in_place

VERSION = "1.7.1"
FOLDER = CACHE / f"mlserver-{VERSION}"


def installed() -> bool:
    """Tell whether a whole installation lies in the cache."""
    return (FOLDER / ".whole").exists()


def install() -> Path:
    """Install MLServer unless it is there, and return the folder of its virtual environment.

    Raises:
        subprocess.CalledProcessError: a package could not be installed; pip's own words went to stderr.
    """
    return made_in_place(FOLDER, _build)


def _build(folder: Path) -> None:
    # The system's interpreter, not ours: hosts of the lab have the same one at the same path.
    subprocess.run(["/usr/bin/python3", "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"mlserver=={VERSION}"], check=True)
