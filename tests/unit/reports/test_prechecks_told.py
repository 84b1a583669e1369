"""A list of checks shows what was looked at; what does not apply is one line."""

from __future__ import annotations

import io

from tests.unit.core.history.history_samples import Tape
from tests.unit.reports.block_text import lines

from changectl.core.history.reading import run_story
from changectl.core.precheck import NOT_EXPOSED, CheckResult, Seen, ThreeValues
from changectl.reports import show
from changectl.reports._blocks import Table
from changectl.reports._prechecks import prechecks
from changectl.reports.preview import instance_blocks
from changectl.reports.printer import Printer


def test_checks_that_do_not_apply_are_named_in_one_line_below_the_others() -> None:
    rows = [
        ("port_owner", "required", "passed", "8080", "ours"),
        ("gpu_memory", "required", "not_applicable", "", "no GPU"),
        ("disk", "required", "failed", "1 B", "full"),
        ("driver_library", "advice", "not_applicable", "", "no GPU"),
    ]

    assert lines(prechecks("check", rows)) == [
        "port_owner | required | passed | 8080; ours",
        "disk | required | failed | 1 B; full",
        "2 checks do not apply here: gpu_memory, driver_library",
    ]


def test_checks_with_addresses_and_paths_fit_a_terminal_of_80_characters_as_a_table() -> None:
    rows = [
        ("edited_since_start", "required", "passed", "2 files", "no configuration file is newer than the service"),
        ("port_owner", "required", "passed", "process 86", "http://10.213.83.111:8000 is served by the process"),
        ("disk_space", "required", "passed", "/etc/systemd/system/llama-chat.service: 71.9 GB free", "67.1 MB needed"),
    ]
    (table,) = prechecks("pre-check", rows)
    assert isinstance(table, Table)

    out = io.StringIO()
    Printer(out=out, terminal=True, width=80).table(table.headings, table.rows)

    assert "edited_since_start  required  passed  2 files; no" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines()[1:])) <= 80


def test_a_preview_and_the_story_of_a_run_fold_them_alike() -> None:
    checks = [CheckResult("disk", "required", "passed"), CheckResult("gpu_memory", "required", "not_applicable")]
    three = ThreeValues("x", Seen("1"), Seen("1"), NOT_EXPOSED)
    assert "1 check does not apply here: gpu_memory" in lines(instance_blocks("gpu1", "/x", "", three, checks, False))

    tape = Tape()
    tape.opened("r1")
    results = [{"name": one.name, "level": one.level, "state": one.state} for one in checks]
    tape.add("r1", "precheck", {"host": "gpu1", "results": results}, step=1)
    assert "1 check does not apply here: gpu_memory" in lines(show.as_blocks(run_story(tape.events)))
