"""What went wrong elsewhere: every situation once, with a report, and with tests that exist or a reason."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

import pytest
from tests.unit.docs.docs_pages import ROOT

PAGES = {
    "docs/explanation/what-went-wrong-elsewhere.md": (
        "1 2 3 6 8 9 11 12 13 14 16 17 19 20 21 22 23 25 26 27 29 30 31 32 33 34 36 38 39 40 41 42 43 45 "
        "46 47 48 49 50 52 53 54"
    ),
    "docs/explanation/streams-that-mislead.md": (
        "A1 A3 A4 A6 A7 A8 A9 A10 A11 B12 B13 B15 B16 B17 B18 C19 C21 C22 C23 "
        "D25 D27 D28 D29 D30 D31 D32 D33 E34 E35 E35b E36"
    ),
}
LATER = ("Comes with ", "comes with ", "come with ")
REASONS = ("cannot happen here", *LATER)


@dataclass(frozen=True)
class Situation:
    """One paragraph of a page."""

    number: str
    text: str

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`(tests/[\w/]+\.py::\w+)`", self.text)

    @property
    def reports(self) -> list[str]:
        return re.findall(r"[\w/.-]+#\d+", self.text)


def situations(page: str) -> list[Situation]:
    text = (ROOT / page).read_text(encoding="utf-8")
    parts = re.split(r"^(?:\*\*(?=[A-E]?\d+b?\. )|## )", text, flags=re.MULTILINE)[1:]
    numbered = [re.match(r"([A-E]?\d+b?)\. (.*)", part, re.DOTALL) for part in parts]
    return [Situation(found[1], found[2]) for found in numbered if found]


ALL = [each for page in PAGES for each in situations(page)]


@pytest.mark.parametrize("page", PAGES)
def test_every_situation_stands_there_exactly_once(page: str) -> None:
    assert [each.number for each in situations(page)] == PAGES[page].split()


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.number)
def test_every_situation_names_who_reported_it_and_what_proves_it_or_why_nothing_has_to(each: Situation) -> None:
    assert each.reports
    assert each.tests or any(reason in each.text for reason in REASONS)
    assert len(each.tests) == each.text.count("::")  # none is misspelt so that nobody reads it
    assert [test for test, times in Counter(each.tests).items() if times > 1] == []


def defined(file: str) -> set[str]:
    """The tests that a file defines, read without running it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("name", sorted({test for each in ALL for test in each.tests}))
def test_every_test_that_is_named_exists_and_is_collected(name: str) -> None:
    file, _, function = name.partition("::")
    assert (ROOT / file).is_file()
    assert (ROOT / file).name.startswith("test_")
    assert function in defined(file)
