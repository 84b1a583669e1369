"""What is installed, and what is published as source, holds everything that changectl needs at run time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "src" / "changectl"


def build(target: str, folder: Path) -> Path:
    """Build one package of the project. The environment of development has the builder, so nothing is fetched."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel_file) as opened:
        return set(opened.namelist())


@pytest.fixture(scope="module")
def installed(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed; what it depends on is there already."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(folder)]
    done = subprocess.run([*command, str(wheel_file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in the source distribution, without its folder."""
    with tarfile.open(build("sdist", tmp_path_factory.mktemp("sdist"))) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def files_below(folder: Path) -> set[str]:
    """The files of a folder, relative to it, without what running it leaves behind."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in paths if path.suffix != ".pyc"}


@pytest.mark.parametrize("folder", ["scaffold", "demo/example"])
def test_the_wheel_holds_every_file_of_the_examples(wheel: set[str], folder: str) -> None:
    wanted = {f"changectl/{folder}/{name}" for name in files_below(PACKAGE / folder)}

    assert wanted
    assert sorted(wanted - wheel) == []


def test_the_wheel_holds_the_plays_and_the_host_program(wheel: set[str]) -> None:
    wanted = {f"changectl/playbooks/{name}" for name in files_below(ROOT / "playbooks")}

    assert "changectl/playbooks/apply.yml" in wanted
    assert "changectl/playbooks/library/changectl_host.py" in wanted
    assert "changectl/playbooks/module_utils/changectl_host/__init__.py" in wanted
    assert sorted(wanted - wheel) == []


def test_the_wheel_holds_every_module_and_says_that_it_is_typed(wheel: set[str]) -> None:
    modules = {f"changectl/{name}" for name in files_below(PACKAGE) if name.endswith(".py")}

    assert sorted(modules - wheel) == []
    assert "changectl/py.typed" in wheel


def test_the_wheel_installs_the_command_and_nothing_beside_the_package(wheel: set[str]) -> None:
    assert {name.partition("/")[0].partition("-")[0] for name in wheel} == {"changectl"}
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel)
    assert any(name.endswith("licenses/LICENSE") for name in wheel)


def test_the_source_holds_all_that_building_testing_and_reading_need(source: set[str]) -> None:
    wanted = [
        "changectl.toml",
        "CONTRIBUTING.md",
        "Makefile",
        "README.md",
        "README.zh-CN.md",
        "CHANGELOG.md",
        "LICENSE",
    ]
    wanted += [
        "pyproject.toml",
        "playbooks/apply.yml",
        "src/changectl/py.typed",
        "docs/index.md",
        "tests/lab/conftest.py",
    ]
    wanted += ["inventory/example/hosts.yml", "changeplans/0001-more-sequences.yml"]

    assert [name for name in wanted if name not in source] == []


def test_what_the_source_is_said_to_hold_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    assert [name for name in included if not (ROOT / name).exists()] == []


def test_what_is_installed_works_from_any_folder(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    used = run("-c", "from changectl.adapters import shipped; print(shipped.__file__, shipped.playbooks_folder())")
    assert [Path(one).is_relative_to(installed) for one in used.split()] == [True, True]
    run("-m", "changectl.cli.main", "init")
    assert "Step 1" in run("-m", "changectl.cli.main", "validate", "changeplans/0001-more-sequences.yml")
    document = json.loads(run("-m", "changectl.cli.main", "validate", "--json", "changeplans/0001-more-sequences.yml"))
    assert document["exit_code"] == 0
