"""Projects, plans and what they name, read from disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from changectl.adapters.files import load_plan, load_service
from changectl.adapters.project_files import find_project
from changectl.adapters.scaffold import write_project
from changectl.core.errors import InputError, Problem

PLAN = "changeplans/0001-more-sequences.yml"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An example project that is the working directory."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def problems(root: Path) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        load_plan(root / PLAN, find_project(root))
    return caught.value.problems


def test_the_example_project_is_sound(root: Path) -> None:
    loaded = load_plan(root / PLAN, find_project(root))

    assert loaded.service.service == "chat"
    assert len(loaded.workload.entries) >= 24
    assert list(loaded.files) == ["inventory/workloads/chat.jsonl"]


def test_an_incident_measures_nothing_and_needs_no_outage(root: Path) -> None:
    text = (root / PLAN).read_text()
    (root / PLAN).write_text("".join(line for line in text.splitlines(True) if not line.startswith("effort:")))

    assert any("add `outage: 30m`" in problem.hint for problem in problems(root))
    assert load_plan(root / PLAN, find_project(root), incident=True).plan.outage is None


def test_the_project_file_is_found_upwards(root: Path) -> None:
    inside = root / "changeplans" / "deep"
    inside.mkdir()

    project = find_project(inside)

    assert project.root == root
    assert project.inventory == root / "inventory/hosts.yml"
    assert project.services == root / "inventory/services"
    assert project.database == root / ".changectl/changectl.db"


def test_without_project_file_the_folder_itself_is_the_project(tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/hosts.yml").touch()

    project = find_project(tmp_path)

    assert (project.file, project.root) == (None, tmp_path)
    assert project.inventory == tmp_path / "inventory/hosts.yml"


def test_a_named_inventory_brings_its_own_services(root: Path) -> None:
    (root / "other").mkdir()

    project = find_project(root, Path("other/hosts.ini"))

    assert project.inventory == root / "other/hosts.ini"
    assert project.services == root / "other/services"


def test_a_project_file_that_everybody_may_write_is_refused(root: Path) -> None:
    (root / "changectl.toml").chmod(0o666)

    with pytest.raises(InputError, match="everybody may write"):
        find_project(root)


def test_an_unknown_service_is_a_problem_of_the_plan(root: Path) -> None:
    edit(root / PLAN, "service: chat", "service: chatt")

    (problem,) = problems(root)

    assert (problem.file, problem.line, problem.path) == (PLAN, 2, "service")
    assert problem.message == "there is no service `chatt` in inventory/services"
    assert problem.hint == "did you mean `chat`? known: chat"


def test_a_parameter_that_the_engine_does_not_have_is_a_problem_of_the_step(root: Path) -> None:
    edit(root / PLAN, "name: max-num-seqs", "name: max-num-seq")

    (problem,) = problems(root)

    assert (problem.file, problem.line, problem.path) == (PLAN, 6, "steps/1/change/parameter/name")
    assert "max-num-seqs" in problem.hint


def test_a_service_is_called_like_its_file(root: Path) -> None:
    edit(root / "inventory/services/chat.yml", "service: chat", "service: talk")

    (problem,) = problems(root)

    assert (problem.file, problem.line, problem.path) == ("inventory/services/chat.yml", 2, "service")


def test_a_missing_workload_is_a_problem_where_it_is_named(root: Path) -> None:
    (root / "inventory/workloads/chat.jsonl").unlink()

    (problem,) = problems(root)

    assert (problem.file, problem.path) == ("inventory/services/chat.yml", "conditions/workload")


def test_a_missing_check_is_a_problem_of_the_step(root: Path) -> None:
    edit(root / PLAN, "    on_inconclusive: revert", "    checks: [checks/a.py]")

    (problem,) = problems(root)

    assert (problem.file, problem.path) == (PLAN, "steps/1/checks/1")
    assert problem.message == "there is no file checks/a.py"


def test_the_problems_of_all_files_come_together(root: Path) -> None:
    edit(root / PLAN, "to: 128", "two: 128")
    edit(root / "inventory/services/chat.yml", "engine: vllm", "engine: vlm")

    assert {problem.file for problem in problems(root)} == {PLAN, "inventory/services/chat.yml"}


def test_an_slo_that_the_engine_cannot_give_is_refused(root: Path) -> None:
    generic = "engine: {generic: {ready: GET /h 200, answer: {protocol: openai_chat}}} #"
    edit(root / "inventory/services/chat.yml", "engine: vllm", generic)
    edit(root / "inventory/services/chat.yml", "failures: <= 1%", "kv_capacity: '>= 5000 tokens'")

    with pytest.raises(InputError, match="slo/kv_capacity"):
        load_service("chat", find_project(root))


@pytest.mark.parametrize("name", [PLAN, "inventory/services/chat.yml", "inventory/workloads/chat.jsonl", "checks/a.py"])
def test_the_digest_covers_every_file_that_is_named(root: Path, name: str) -> None:
    (root / "checks").mkdir()
    (root / "checks/a.py").write_text("def test(host): ...\n")
    edit(root / PLAN, "    on_inconclusive: revert", "    checks: [checks/a.py]")
    before = load_plan(root / PLAN, find_project(root)).digest(["gpu1"], "1")
    with (root / name).open("a") as file:
        file.write("\n")

    after = load_plan(root / PLAN, find_project(root)).digest(["gpu1"], "1")

    assert before != after


def test_a_folder_is_not_a_plan(root: Path) -> None:
    with pytest.raises(InputError, match="not a file"):
        load_plan(root / "changeplans", find_project(root))


def test_the_example_workload_is_varied(root: Path) -> None:
    lines = [json.loads(line) for line in (root / "inventory/workloads/chat.jsonl").read_text().splitlines()]

    assert len({json.dumps(line.get("prompt", line.get("turns"))) for line in lines}) == len(lines)
    assert len({line["max_tokens"] for line in lines}) > 5
    assert any("turns" in line for line in lines)
