"""The manifest of a 4 GB model folder with full digests, beside `sha256sum` on the same files."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.table import Row

FILES, GIGABYTES, ROUNDS = 4, 4.0, 3
SPARE = 4 << 30  # bytes of disk that stay free
_BLOCK = 8 << 20


def write_folder(folder: Path, files: int, size: int) -> None:
    """Files of bytes that nothing compresses; one block of real randomness, shifted, so that writing is quick."""
    noise = os.urandom(_BLOCK)
    for number in range(files):
        with (folder / f"weights-{number:05d}.bin").open("wb") as file:
            left = size
            while left > 0:
                shift = (left * 7919 + number) % _BLOCK
                piece = (noise[shift:] + noise[:shift])[: min(left, _BLOCK)]
                file.write(piece)
                left -= len(piece)


def manifest(folder: Path, known: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """Seconds of the host program's own call, in a process of its own as on a host, and its answer."""
    code = (
        "import json,sys,time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import changectl_host\n"
        "job = json.load(sys.stdin)\n"
        "begun = time.perf_counter()\n"
        "answer = changectl_host.dispatch('model', job, lambda facts: None)\n"
        "json.dump([time.perf_counter() - begun, answer], sys.stdout)\n"
    )
    program = Path(__file__).resolve().parents[2] / "playbooks" / "module_utils"
    job = {"path": str(folder), "deep": True, "known": known}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(program)], input=json.dumps(job), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    seconds, answer = json.loads(done.stdout)
    return seconds, answer


def sha256sum(folder: Path) -> tuple[float, dict[str, str]]:
    """Seconds of sha256sum on all files, and what it says."""
    names = sorted(path.name for path in folder.iterdir())
    begun = time.perf_counter()
    done = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    pairs = (line.split() for line in done.stdout.splitlines())
    return seconds, {name.lstrip("*"): digest for digest, name in pairs}


def known_of(answer: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What the controller keeps of a manifest for the next time."""
    return {file["path"]: [file["size"], file["mtime_ns"], file["sha256"]] for file in answer["files"]}


def measure(folder: Path, rounds: int) -> tuple[float, float, float]:
    """Medians of: full, sha256sum, unchanged second time; alternating, page cache warmed for both."""
    sha256sum(folder)
    figures: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        full, answer = manifest(folder, {})
        rival, digests = sha256sum(folder)
        again, second = manifest(folder, known_of(answer))
        if {file["path"]: file["sha256"] for file in answer["files"]} != digests or second["files"] != answer["files"]:
            raise AssertionError("the manifest's digests are not those of sha256sum")
        figures.append((full, rival, again))
    full, rival, again = (statistics.median(column) for column in zip(*figures, strict=True))
    return full, rival, again


def run(gigabytes: float = GIGABYTES, rounds: int = ROUNDS) -> list[Row]:
    """Two floors: the rival, and a twentieth of it where nothing changed."""
    size = int(gigabytes * (1 << 30) / FILES)
    place = Path(tempfile.mkdtemp(prefix="changectl-bench-", dir=os.environ.get("CHANGECTL_BENCH_FOLDER", "/var/tmp")))
    try:
        free = shutil.disk_usage(place).free
        if free < size * FILES + SPARE:
            raise RuntimeError(f"{place} has {free >> 30} GiB free: {gigabytes} GB and 4 GB to spare are needed")
        write_folder(place, FILES, size)
        full, rival, again = measure(place, rounds)
    finally:
        shutil.rmtree(place)
    what = f"model manifest, {gigabytes:g} GB in {FILES} files"
    note = f"median of {rounds} alternating rounds, files in the page cache; the figure is the host call's own"
    return [
        Row("manifest", f"{what}, full digest", "not slower than sha256sum", full, rival, rival, note=note),
        Row("manifest", f"{what}, unchanged", "under 5 % of sha256sum", again, rival * 0.05, rival, note=note),
    ]
