"""A headless Chromium: found, or installed where LAB_INSTALL=1 allows it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.lab.harness.install import LabMissingError, demanded, install, may_install

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
LONGEST = 120.0  # seconds; a loaded machine takes some to start it


def chromium() -> str:
    """The program; without one the test is left out, or fails where nothing may be left out."""
    found = _found()
    if found is None and may_install() and os.geteuid() == 0 and shutil.which("apt-get"):
        install(*PACKAGES)
        found = _found()
    if found is None:
        text = "no Chromium is here; LAB_INSTALL=1 as root on Debian installs one"
        if demanded():
            raise LabMissingError(text)
        pytest.skip(text)
    return found


def _found() -> str | None:
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def opened(page: Path, *options: str) -> str:
    """Open a page of this machine, let its scripts come to an end, and return what became of it."""
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--allow-file-access-from-files",
        "--virtual-time-budget=3000", "--hide-scrollbars", *options, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
