"""`from` asserts what stands in the file before the change; where `to` stands there already, nothing is left to do."""

from __future__ import annotations

from tests.workflow.fake_host import UNIT
from tests.workflow.stage import Stage

from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import apply
from changectl.workflow.preview import preview, would_proceed

PLAN = """\
version: 1
service: chat
reason: a story
effort: quick
steps:
  - change: {parameter: {name: parallel, from: 4, to: 8}}
    expect: neutral
"""


def with_slots(slots: int) -> Stage:
    """A service that was started with so many slots."""
    stage = Stage()
    stage.host.files[UNIT] = stage.host.files[UNIT].replace(b"--parallel 4", f"--parallel {slots}".encode())
    stage.host.restart()
    assert stage.host.process is not None
    stage.host.process.started -= 3600.0
    stage.before["gpu1"] = stage.host.digests()
    return stage


def test_a_plan_that_was_carried_out_has_nothing_to_do_the_second_time() -> None:
    stage = with_slots(8)
    end = apply(stage.order(PLAN), stage.tools)

    (ending,) = end.endings
    assert (ending.outcome, ending.reason, end.exit_code) == (Outcome.KEPT, "nothing_to_do", 0)
    assert stage.unchanged()
    assert would_proceed(preview(stage.order(PLAN), stage.tools))


def test_any_third_value_in_the_file_refuses_the_change_and_is_named() -> None:
    stage = with_slots(16)
    end = apply(stage.order(PLAN), stage.tools)

    (ending,) = end.endings
    assert (ending.outcome, ending.reason, end.exit_code) == (Outcome.REFUSED, "from_differs", 3)
    assert "parallel is 16 in /etc/systemd/system/chat.service, the plan says from: 4" in ending.text
    assert stage.unchanged()
