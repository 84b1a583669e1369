"""Every YAML block of the pages is read by the real grammar, and pages that are scripts are carried out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.unit.docs.docs_pages import PAGES, ROOT, Block, Page

from changectl import engines, kinds
from changectl.cli.main import main
from changectl.core.declared import plan, project, service
from changectl.core.declared.plan import ConditionsOverride, Plan
from changectl.core.declared.service import Service
from changectl.core.declared.step import Step
from changectl.core.replaying import policy
from changectl.core.workload import requests as workload

BLOCKS = [block for each in PAGES for block in each.blocks if block.language in ("yaml", "toml", "jsonl")]
SCRIPTS = [each for each in PAGES if any(block.info == "run" for block in each.blocks)]
PLANS = sorted((ROOT / "changeplans").glob("*.yml"))
STEP_KEYS = {"change", "expect", "accept", "checks", "on_inconclusive"}
PLAN_KEYS = set(Plan.model_fields)
SERVICE_KEYS = {field.alias or name for name, field in Service.model_fields.items()}
# What stands in other programs' files: an inventory, a host's configuration.
FOREIGN = ("hosts.yml", "group_vars/", "host_vars/", "docker-compose.yml", "on-the-host/")

WHOLE_PLAN: dict[str, Any] = {"version": 1, "service": "chat", "reason": "a reason", "effort": "quick"}
WHOLE_SERVICE: dict[str, Any] = {
    "version": 1,
    "service": "chat",
    "class": "interactive",
    "instances": [{"host": "gpu1", "endpoint": "http://10.0.0.5:8000"}],
    "engine": "vllm",
    "manager": {"command": {"start": "./run start", "cwd": "/srv/chat", "pid": {"port": 8000}}},
    "model": {"path": "/srv/models/chat"},
    "conditions": {
        "workload": "chat.jsonl",
        "levels": {"low": "1 stream", "normal": "8 streams", "peak": "16 streams"},
    },
}


def dump(data: Any) -> str:
    import io

    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(data, stream)
    return stream.getvalue()


def read(text: str) -> Any:
    """The data with every scalar as it is written, since that is how the grammar reads it."""
    yaml = YAML(typ="safe", pure=True)
    return yaml.load(text)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_read_by_the_real_grammar(block: Block) -> None:
    if block.language == "toml":
        project.load(block.text, str(block))
    elif block.language == "jsonl":
        workload.load(block.text.encode(), str(block))
    elif any(part in block.title for part in FOREIGN):
        assert read(block.text)
    elif "changeplans/" in block.title:
        plan.load(block.text, str(block), kinds=kinds.specs())
    elif "services/" in block.title:
        service.load(block.text, str(block), engines=engines.names())
    elif "policies/" in block.title:
        policy.load(block.text, str(block), levels=WHOLE_SERVICE["conditions"]["levels"])
    else:
        _read_fragment(block)


def _read_fragment(block: Block) -> None:
    data = read(block.text)
    if isinstance(data, list):
        data = {"steps": data}
    keys = set(data)
    if keys <= STEP_KEYS:
        data = {"steps": [{"change": {"parameter": {"name": "max-num-seqs", "to": "8"}}, "expect": "neutral", **data}]}
    if set(data) <= PLAN_KEYS and _looks_like_a_plan(data):
        steps = [{"expect": "neutral", **step} for step in data.get("steps", [_a_step()])]
        plan.load(dump({**WHOLE_PLAN, **data, "steps": steps}), str(block), kinds=kinds.specs())
    elif keys <= SERVICE_KEYS:
        service.load(dump({**WHOLE_SERVICE, **data}), str(block), engines=engines.names())
    else:
        pytest.fail(
            f"{block}: neither a plan nor a service: {', '.join(sorted(keys))}; name its file in the first line"
        )


def _looks_like_a_plan(data: dict[str, Any]) -> bool:
    if set(data) == {"conditions"}:
        return set(data["conditions"]) <= set(ConditionsOverride.model_fields) - {"workload"}
    return True


def _a_step() -> dict[str, Any]:
    return {"change": {"parameter": {"name": "max-num-seqs", "to": "8"}}, "expect": "neutral"}


def test_a_step_has_no_key_that_this_test_overlooks() -> None:
    assert STEP_KEYS | {"watch"} == set(Step.model_fields)


@pytest.mark.parametrize("each", SCRIPTS, ids=lambda each: each.name)
def test_a_page_that_is_a_script_works(each: Page, tmp_path: Path) -> None:
    """Files are written and ```` ```sh run ```` blocks carried out in the page's order; none needs a host."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    shim = bin_folder / "changectl"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m changectl.cli.main "$@"\n')
    shim.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}
    script = ["set -eu"]
    for block in each.blocks:
        if block.info == "run":
            script.append(block.text)
        elif block.title and block.language in ("yaml", "toml"):
            script.append(f"cat > '{block.title}' <<'END OF BLOCK'\n{block.text}\nEND OF BLOCK")

    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=work, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tutorial_is_a_script() -> None:
    assert "docs/tutorial/first-change.md" in [each.name for each in SCRIPTS]


def test_the_example_plans_are_numbered_in_order() -> None:
    assert [path.name[:4] for path in PLANS] == [f"{number:04}" for number in range(1, len(PLANS) + 1)]
    assert len(PLANS) >= 4


def test_the_example_plans_are_valid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)

    code = main(["validate", *map(str, PLANS)])

    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert all(path.name in captured.out for path in PLANS)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_an_example_measures_what_it_names(path: Path) -> None:
    """A level that a serving instance does not get would be promised and never measured."""
    each = plan.load(path.read_bytes(), path.name, kinds=kinds.specs())
    own = service.load((ROOT / f"inventory/example/services/{each.service}.yml").read_bytes(), each.service)
    measured = set(own.conditions.levels) if own.limits.load_on_live else {"low"}

    for step in each.steps:
        named = [gain.ref.level for gain in step.expect.gains] + [guard.ref.level for guard in step.accept]
        assert {level for level in named if level} <= measured
    assert (own.conditions.requests or 0) >= 60  # what a P95 needs
