"""What every member of a family owes its readers: a page, cases, and a place in its family's list."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.contract.imports import ROOT, SOURCE

from changectl.core.errors import InputError

# Family -> the folder of its pages. Reports are the faces of commands, which have pages of their own.
PAGES = {
    "engines": "engines",
    "formats": "formats",
    "kinds": "kinds",
    "loads": "loads",
    "managers": "managers",
    "probes": "prechecks",
    "traffic": "traffic",
}
SHORTEST_PAGE = 300  # characters: less than this tells nobody anything


def members(family: str) -> list[str]:
    folder = SOURCE / "changectl" / family
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


MEMBERS = [(family, name) for family in PAGES for name in members(family)]


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_every_member_has_a_page(family: str, name: str) -> None:
    page = ROOT / "docs" / "reference" / PAGES[family] / f"{name}.md"

    assert page.is_file(), f"write {page.relative_to(ROOT)}"
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert len(text) >= SHORTEST_PAGE


@pytest.mark.parametrize("family", PAGES)
def test_no_page_describes_a_member_that_is_gone(family: str) -> None:
    pages = {path.stem for path in (ROOT / "docs" / "reference" / PAGES[family]).glob("*.md")} - {"index", "README"}

    assert pages <= set(members(family))


@pytest.mark.parametrize(("family", "name"), MEMBERS)
def test_every_member_has_cases(family: str, name: str) -> None:
    folder = ROOT / "tests" / "unit" / family
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    named = any(name in path.relative_to(folder).as_posix() for path in files)
    quoted = any(f'"{name}"' in path.read_text(encoding="utf-8") for path in files if path.suffix == ".py")

    assert named or quoted, f"no file under tests/unit/{family} is about {name}"


@pytest.mark.parametrize("family", PAGES)
def test_a_family_lists_its_folder(family: str) -> None:
    package = import_module(f"changectl.{family}")

    assert sorted(package.names()) == members(family)


@pytest.mark.parametrize("family", PAGES)
def test_an_unknown_member_is_an_error_that_lists_the_known_ones(family: str) -> None:
    package = import_module(f"changectl.{family}")

    with pytest.raises(InputError) as raised:
        package.load("no-such-member")
    assert members(family)[0] in str(raised.value)
