"""The ending that "Read a verdict" explains is one that changectl prints, some lines left out."""

from __future__ import annotations

import io

from tests.unit.docs.docs_pages import page
from tests.workflow.stage import BETTER, Stage
from tests.workflow.test_trial import GAIN, plan

from changectl.cli._present import print_blocks
from changectl.core.history.reading import run_story
from changectl.reports import ending
from changectl.reports.printer import Printer
from changectl.workflow.apply import apply

RUN = "20261130-081502-chat-k3f7"  # in place of the test's own name for it


def test_the_ending_on_the_page_is_what_a_trial_without_a_verdict_prints() -> None:
    stage = Stage()
    end = apply(stage.order(plan(BETTER, GAIN, "{time: 32s}")), stage.tools)
    out = io.StringIO()
    story = run_story(stage.journal.events(end.run))
    print_blocks(ending.as_blocks(story, end.exit_code, once=True), Printer(out, out, terminal=False))
    printed = out.getvalue().replace(end.run, RUN).strip()

    (shown,) = [block.text for block in page("docs/how-to/read-a-verdict.md").blocks if block.language == "text"]
    lines = iter(printed.splitlines())
    assert [line for line in shown.strip().splitlines() if line not in lines] == []
