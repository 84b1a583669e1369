"""Pages hang together: links lead somewhere, commands exist, tables say what the code says, both READMEs agree."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.unit.docs.docs_pages import BY_NAME, PAGES, ROOT, Page, anchor, page

from changectl.adapters.environment import ALLOWED
from changectl.cli.main import command
from changectl.core import errors, lifecycle
from changectl.core.lifecycle import Outcome

CONTEXT = click.Context(command, info_name="changectl")
COMMANDS = command.list_commands(CONTEXT)
SHARED = "## Options of several commands"
PLACEHOLDERS = {"COMMAND", "..."}


@pytest.mark.parametrize("each", PAGES, ids=lambda each: each.name)
def test_every_link_leads_somewhere(each: Page) -> None:
    broken = []
    for link in each.links:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, fragment = link.partition("#")
        file = (each.path.parent / target).resolve() if target else each.path
        name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
        if not name or not file.exists() or (fragment and fragment not in BY_NAME[name].anchors):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "docs/index.md"]
    while waiting:
        file = waiting.pop()
        if file in reached or file.suffix != ".md" or not file.is_relative_to(ROOT):
            continue
        reached.add(file)
        name = file.relative_to(ROOT).as_posix()
        links = (link.partition("#")[0] for link in BY_NAME[name].links if "://" not in link)
        waiting += [(file.parent / link).resolve() for link in links if link]

    assert {each.name for each in PAGES if each.name.startswith("docs/") and each.path not in reached} == set()


@pytest.mark.parametrize("each", PAGES, ids=lambda each: each.name)
def test_every_example_names_existing_commands_and_options(each: Page) -> None:
    assert [problem for call in each.calls for problem in _problems(call)] == []


def _problems(call: str) -> list[str]:
    words = shlex.split(call.replace("'", "").replace('"', "")) if call else []
    name = next((word for word in words if not word.startswith("-")), None)
    if name is not None and name not in COMMANDS and name not in PLACEHOLDERS:
        return [f"{call}: no command {name}"]
    found = command.get_command(CONTEXT, name) if name in COMMANDS else command
    assert found is not None
    options = {spelling for parameter in found.get_params(CONTEXT) for spelling in parameter.opts}
    options |= {"-h", "--help"}
    used = {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-zA-Z][a-z-]*(=.*)?", word)}
    return [f"{call}: {name or 'changectl'} has no option {option}" for option in sorted(used - options)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_described_with_all_its_options(name: str) -> None:
    reference = page("docs/reference/cli.md")
    found = command.get_command(CONTEXT, name)
    assert found is not None

    text = reference.section(f"## changectl {name}") + reference.section(SHARED)

    missing = [opt for parameter in found.params for opt in parameter.opts if opt[0] == "-" and f"`{opt}" not in text]
    assert missing == []
    assert f"changectl {name}" in text.split(SHARED)[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_in_its_help(name: str) -> None:
    found = command.get_command(CONTEXT, name)
    assert found is not None

    assert f"  changectl {name}" in (found.epilog or "")
    assert found.short_help
    assert len(found.short_help) <= 60
    for line in (found.epilog or "").splitlines():
        if line.strip().startswith("changectl"):
            assert _problems(line.strip().removeprefix("changectl").split("&&")[0].split(">")[0]) == []


def test_the_table_of_exit_codes_is_what_the_code_does() -> None:
    table = _exit_codes("docs/reference/exit-codes.md")
    words = {code: set(re.findall(r"`([a-z_]+)`", row)) for code, row in table.items()}

    assert words[4] == lifecycle.FOR_CAUSE
    assert words[3] >= lifecycle.NOTHING_WRITTEN
    for reason in (*words[4], *words[5], lifecycle.INTERRUPTED, lifecycle.UNEXPECTED):
        assert reason in words[lifecycle.Ending(Outcome.REVERTED, reason, "").exit_code]
    by_reason = {Outcome.REVERTED, Outcome.ABORTED, Outcome.KEPT_PARTLY}
    for outcome in set(Outcome) - by_reason:
        assert outcome.value in words[lifecycle.Ending(outcome, "any", "").exit_code]
    for kind in (errors.InputError, errors.Refused, errors.Locked, errors.ContactLost):
        assert kind.exit_code in table
    assert set(table) == {*range(10), 130}


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_has_the_same_exit_codes(name: str) -> None:
    assert set(_exit_codes(name)) == set(_exit_codes("docs/reference/exit-codes.md"))


def test_help_names_only_exit_codes_of_the_table() -> None:
    told = (command.epilog or "").partition("Exit codes:")[2].split("Completion")[0]

    assert set(map(int, re.findall(r"\d+", told))) == set(_exit_codes("docs/reference/exit-codes.md")) - {8}


def _exit_codes(name: str) -> dict[int, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return {int(code): row for code, row in re.findall(r"^\| `?(\d+)`? \|(.*)$", text, re.MULTILINE)}


def test_every_variable_that_ansible_may_see_is_listed() -> None:
    text = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")

    assert [name for name in ALLOWED if f"`{name}`" not in text] == []


def test_the_chinese_readme_has_the_same_sections_and_code() -> None:
    english, chinese = BY_NAME["README.md"], BY_NAME["README.zh-CN.md"]

    assert [level for level, _ in chinese.headings] == [level for level, _ in english.headings]
    assert [(block.language, block.text) for block in chinese.blocks] == [
        (block.language, block.text) for block in english.blocks
    ]
    targets = [[link for link in each.links if "README" not in link] for each in (english, chinese)]
    assert targets[1] == targets[0]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_states_the_two_commands(name: str) -> None:
    code = "\n".join(block.text for block in BY_NAME[name].blocks)

    for words in ("make demo", "make test", "LAB_INSTALL=1 make test", "pip install ."):
        assert words in code


def test_anchors_are_made_as_hosts_of_git_make_them() -> None:
    assert anchor("## changectl apply"[3:]) == "changectl-apply"
    assert anchor("What it does, and `why`") == "what-it-does-and-why"
