from __future__ import annotations

import io

import pytest
from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.cli._present import print_blocks
from changectl.cli.plan import blocks
from changectl.reports.printer import Printer
from changectl.workflow.preview import preview


@pytest.mark.parametrize(("code", "end"), [(0, "apply would proceed"), (3, "apply would refuse")])
def test_a_preview_tells_difference_values_checks_and_what_apply_would_do(code: int, end: str) -> None:
    stage, out = Stage(), io.StringIO()
    order = stage.order(plan_text(BETTER))

    print_blocks(blocks(order, preview(order, stage.tools), code), Printer(out=out, err=io.StringIO()))

    told = out.getvalue()
    assert "in the process" in told
    assert "values_agree" in told
    assert f"--parallel {BETTER}" in told
    assert told.rstrip().endswith(end)
