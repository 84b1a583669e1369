"""The operator's own checks, run by a real pytest with testinfra."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from changectl.adapters.checks import TestinfraChecks as OperatorChecks
from changectl.adapters.shipped import playbooks_folder
from changectl.core.ports import ChecksResult, HostAddress

INVENTORY = "all: {hosts: {here: {ansible_connection: local, marker: %s}}}\n"
SECRET = "correct-horse-battery-staple"


class Desk:
    """A project with checks in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = folder / "hosts.yml"
        source.write_text(INVENTORY % folder)
        environ = {**os.environ, "SOME_API_KEY": SECRET}
        self.checks = OperatorChecks(source, playbooks_folder(), folder, environ=environ)

    def run(self, text: str) -> ChecksResult:
        file = self.folder / "check_it.py"
        file.write_text(text)
        return self.checks.run([str(file)], HostAddress("here"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_checks_that_hold_pass_and_see_the_host(desk: Desk) -> None:
    (desk.folder / "there").write_text("")
    result = desk.run(f"def test_there(host):\n    assert host.file('{desk.folder}/there').exists\n")
    assert (result.passed, result.failed, result.ok) == (1, 0, True)


def test_one_that_does_not_hold_fails_them_all(desk: Desk) -> None:
    result = desk.run(
        "def test_a(host):\n    assert host.exists('sh')\ndef test_b(host):\n    assert host.exists('no-such')\n"
    )
    assert (result.passed, result.failed, result.ok) == (1, 1, False)
    assert "test_b" in result.report


@pytest.mark.parametrize(
    "text",
    ["", "def test_a(:\n", "import no_such_module\n", "def test_a(host, no_such_fixture):\n    pass\n"],
    ids=["no test", "syntax error", "import error", "fixture error"],
)
def test_what_cannot_run_is_never_a_pass(text: str, desk: Desk) -> None:
    assert not desk.run(text).ok


def test_skipped_checks_prove_nothing(desk: Desk) -> None:
    assert not desk.run("import pytest\n@pytest.mark.skip\ndef test_a(host):\n    pass\n").ok


def test_the_environment_holds_no_secrets_of_the_caller_and_nothing_is_left_in_the_project(desk: Desk) -> None:
    before = {path.name for path in desk.folder.iterdir()}
    result = desk.run("import os\ndef test_a(host):\n    assert 'SOME_API_KEY' not in os.environ\n")
    assert result.ok
    assert {path.name for path in desk.folder.iterdir()} - before == {"check_it.py"}


def test_somebody_who_asks_the_run_to_end_is_heard_and_nothing_runs_on(desk: Desk) -> None:
    begun = time.monotonic()

    def check() -> None:
        if time.monotonic() - begun > 1.5:
            raise KeyboardInterrupt

    checks = OperatorChecks(desk.checks.source, playbooks_folder(), desk.folder, check)
    file = desk.folder / "check_it.py"
    file.write_text(f"import time\ndef test_a():\n    time.sleep(60)\n# {desk.folder}\n")
    with pytest.raises(KeyboardInterrupt):
        checks.run([str(file)], HostAddress("here"))
    assert time.monotonic() - begun < 10
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [words for words in running if str(file).encode() in words]
