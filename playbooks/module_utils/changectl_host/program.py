"""The program as one zip: what travels to hosts, and what capture leaves behind to run by hand."""

from __future__ import annotations

import io
import sys
import types
import zipfile
from typing import Any, Dict

NAME = "changectl_host"
_MAIN = "import sys\n\nfrom changectl_host.cli import main\n\nsys.exit(main(sys.argv[1:]))\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def source_of(module: types.ModuleType) -> str:
    """The source text of a loaded module, wherever it was loaded from: a folder, a zip, or memory."""
    loader: Any = module.__spec__.loader if module.__spec__ else None
    text = loader.get_source(module.__name__) if loader is not None else None
    if not isinstance(text, str):
        raise TypeError(f"the source of {module.__name__} cannot be had")
    return text


def sources() -> Dict[str, str]:
    """Every module of this package: {path in the zip: source}."""
    package = __name__.rpartition(".")[0]
    found = {}
    for name, module in list(sys.modules.items()):
        if name == package:
            found[f"{NAME}/__init__.py"] = source_of(module)
        elif name.startswith(f"{package}."):
            found[f"{NAME}/{name[len(package) + 1 :].replace('.', '/')}.py"] = source_of(module)
    return found


def program_zip() -> bytes:
    """The package as a zip with a `__main__`: equal bytes for equal sources, on every machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in sorted({**sources(), "__main__.py": _MAIN}.items()):
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.external_attr = 0o600 << 16
            entry.create_system = 3
            # Stored, not deflated: zlib builds differ in their output, and a digest of the program must not.
            archive.writestr(entry, text.encode("utf-8"))
    return buffer.getvalue()
