"""Packs the load generator. Runs on the controller only."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import h11

_MAIN = """import sys
from changectl.adapters.loadgen.main import main
sys.exit(main())
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_zip() -> bytes:
    """The packed program; deterministic, so that its digest can be recorded as a condition of the measurement."""
    here = Path(__file__).resolve().parent
    package = here.parents[1]
    members = {"__main__.py": _MAIN.encode(), "changectl/__init__.py": b"", "changectl/adapters/__init__.py": b""}
    for folder, prefix in (
        (package / "loads", "changectl/loads"),
        (here, "changectl/adapters/loadgen"),
        (Path(h11.__file__).resolve().parent, "h11"),
    ):
        for source in folder.glob("*.py"):
            if source != Path(__file__).resolve():
                members[f"{prefix}/{source.name}"] = source.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, members[name])
    return packed.getvalue()
