"""The pages about plans, services and the project file: their examples are read, and no key goes without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.unit.core.declared.grammar_samples import read_plan, read_service

from changectl.core.declared import project
from changectl.core.declared.carrier_entry import CarrierEntry
from changectl.core.declared.plan import Plan
from changectl.core.declared.project import ProjectFile
from changectl.core.declared.service import Service
from changectl.core.declared.step import Step
from changectl.core.workload import requests as workload

PAGES = Path(__file__).parents[4] / "docs" / "reference"


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def examples(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


def test_the_plans_of_the_page_are_good() -> None:
    found = examples("plan.md", "yaml")

    assert found
    for text in found:
        read_plan(text)


def test_the_services_of_the_page_are_good() -> None:
    whole, *others = examples("service.md", "yaml")

    assert others
    for text in (whole, *others):
        read_service(text if text.startswith("version:") else with_keys(whole, text))


def with_keys(whole: str, part: str) -> str:
    """A whole service with the keys that a page shows alone in place of its own."""
    entries = re.split(r"^(?=\w)", whole, flags=re.MULTILINE)
    shown = {line.partition(":")[0] for line in part.splitlines() if line[:1].isalpha()}
    return "".join([*(entry for entry in entries if entry.partition(":")[0] not in shown), part])


def test_the_project_file_and_the_workload_of_the_pages_are_good() -> None:
    for text in examples("project-file.md", "toml"):
        project.load(text, "changectl.toml")
    for text in examples("service.md", "json"):
        workload.load(text.encode(), "w.jsonl")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("plan.md", Plan),
        ("plan.md", Step),
        ("service.md", Service),
        ("service.md", CarrierEntry),
        ("project-file.md", ProjectFile),
    ],
)
def test_every_key_is_described(name: str, model: type[BaseModel]) -> None:
    keys = [info.alias or field for field, info in model.model_fields.items()]

    assert [key for key in keys if f"`{key}`" not in page(name)] == []
