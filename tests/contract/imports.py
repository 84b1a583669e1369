"""Who imports whom inside the package, read from the source without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
HOST_PROGRAM = ROOT / "playbooks" / "module_utils"

FAMILIES = ("kinds", "formats", "engines", "managers", "traffic", "loads", "probes", "reports")
LOADGEN = "changectl.adapters.loadgen"


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the module that has it, the module it names, and the line."""

    importer: str
    imported: str
    line: int
    lazy: bool  # inside a function: it happens only when that is called

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(root: Path, package: str) -> dict[str, Path]:
    return {module_name(path, root): path for path in sorted((root / package).rglob("*.py"))}


def imports(root: Path, package: str) -> list[Import]:
    """All imports of a package's modules, those inside functions and for type checkers included."""
    known = modules(root, package)
    return [found for name, path in known.items() for found in _of(name, path, set(known))]


def _of(name: str, path: Path, known: set[str]) -> Iterator[Import]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(inner) for function in functions for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(name, alias.name, node.lineno, id(node) in inside)
        elif isinstance(node, ast.ImportFrom):
            base = _base(package, node)
            for alias in node.names:
                # `from a import b` names the module a.b where there is one, otherwise something inside a.
                inner = f"{base}.{alias.name}" if base else alias.name
                yield Import(name, inner if inner in known else base, node.lineno, id(node) in inside)


def _base(package: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    upper = ".".join(parts[: len(parts) - node.level + 1])
    return f"{upper}.{node.module}" if node.module else upper


def floor(module: str) -> str:
    """The folder below the package: core, a family, workflow, ...; empty for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def is_standard(module: str) -> bool:
    return module.split(".")[0] in sys.stdlib_module_names
