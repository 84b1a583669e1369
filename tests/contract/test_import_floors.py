"""The floors of the design: whoever stands lower never imports what stands higher."""

from __future__ import annotations

import pytest
from tests.contract.imports import FAMILIES, HOST_PROGRAM, LOADGEN, SOURCE, Import, floor, imports, is_standard, modules

ALL = imports(SOURCE, "changectl")
OWN = [found for found in ALL if found.imported.split(".")[0] == "changectl"]
KNOWN_FLOORS = {"", "core", *FAMILIES, "workflow", "adapters", "store", "cli", "demo"}

# Things with an effect or with a mind of their own: time, chance, the network, processes, databases.
EFFECTS = {
    "ansible", "ansible_runner", "asyncio", "http", "multiprocessing", "paramiko", "random", "secrets", "socket",
    "sqlalchemy", "sqlite3", "sqlmodel", "ssl", "subprocess", "threading", "time", "uuid",
}  # fmt: skip


def member(module: str) -> str:
    """The family member a module belongs to; empty: the family itself or its shared helpers."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and not parts[2].startswith("_") else ""


def is_family_itself(module: str) -> bool:
    return floor(module) in FAMILIES and module.count(".") == 1


def may_import(importer: str, imported: str) -> bool:
    here, there = floor(importer), floor(imported)
    if not there or imported == importer:
        return True
    if here == "loads" or importer.startswith(LOADGEN):
        return there == "loads" or imported.startswith(LOADGEN)
    if here == "core":
        return there == "core"
    if here in FAMILIES:
        if there == here:
            return not member(imported) or member(imported) == member(importer)
        return there == "core" or is_family_itself(imported)
    lower = there == "core" or there in FAMILIES
    if here == "workflow":
        return lower or there == "workflow"
    if here in {"adapters", "store", "demo"}:
        return lower or there == here
    return here == "cli"


def is_unknown_protocol_error(found: Import) -> bool:
    """The one thing of the controller that the loads' list names, and only where there is a controller."""
    return (found.importer, found.imported, found.lazy) == ("changectl.loads", "changectl.core.errors", True)


@pytest.mark.parametrize("name", sorted({floor(found.importer) for found in OWN}))
def test_nobody_imports_upwards_or_sideways(name: str) -> None:
    here = [found for found in OWN if floor(found.importer) == name and not is_unknown_protocol_error(found)]
    wrong = [str(found) for found in here if not may_import(found.importer, found.imported)]

    assert wrong == []


def test_every_folder_has_its_floor() -> None:
    assert {floor(name) for name in modules(SOURCE, "changectl")} <= KNOWN_FLOORS


def test_core_and_families_have_no_effects() -> None:
    pure = {"core", *FAMILIES}
    wrong = [str(found) for found in ALL if floor(found.importer) in pure and found.imported.split(".")[0] in EFFECTS]

    assert wrong == []


def test_what_travels_to_a_caller_host_needs_nothing_installed() -> None:
    travelling = [found for found in ALL if floor(found.importer) == "loads" or found.importer.startswith(LOADGEN)]
    wrong = [str(found) for found in travelling if not (_own(found) or is_standard(found.imported) or _is_h11(found))]

    assert wrong == []


def test_the_host_program_needs_only_the_standard_library() -> None:
    found = imports(HOST_PROGRAM, "changectl_host")
    foreign = [one for one in found if one.imported.split(".")[0] != "changectl_host"]
    wrong = [str(one) for one in foreign if not is_standard(one.imported)]

    assert found
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("changectl.core.declared.plan", "changectl.core.errors", True),
        ("changectl.core.declared.plan", "changectl.engines", False),
        ("changectl.engines.vllm", "changectl.engines._base", True),
        ("changectl.engines.vllm", "changectl.engines.llamacpp", False),
        ("changectl.engines._base", "changectl.engines.vllm", False),
        ("changectl.kinds.parameter", "changectl.formats", True),
        ("changectl.kinds.parameter", "changectl.formats.yaml", False),
        ("changectl.kinds.parameter", "changectl.workflow.apply", False),
        ("changectl.workflow.apply", "changectl.engines", True),
        ("changectl.workflow.apply", "changectl.adapters.door", False),
        ("changectl.workflow.apply", "changectl.store", False),
        ("changectl.adapters.door", "changectl.workflow.apply", False),
        ("changectl.adapters.door", "changectl.store", False),
        ("changectl.store.journal", "changectl.core.errors", True),
        ("changectl.adapters.loadgen.main", "changectl.loads", True),
        ("changectl.adapters.loadgen.main", "changectl.core.errors", False),
        ("changectl.loads.openai_chat", "changectl.core.errors", False),
        ("changectl.cli.wiring", "changectl.adapters.door", True),
    ],
)
def test_the_rule_itself(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) is allowed


def _own(found: Import) -> bool:
    return found.imported.split(".")[0] == "changectl"


def _is_h11(found: Import) -> bool:
    return found.imported.split(".")[0] == "h11"
