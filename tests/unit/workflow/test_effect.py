"""Did the change arrive, and nothing else?"""

from __future__ import annotations

from tests.workflow.fake_host import ENV, UNIT
from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.workflow.contact import make_contact, open_target
from changectl.workflow.effect import Effect, effect_of


class Change:
    """A contact taken before the change; then the host moves on."""

    def __init__(self, extra: str = "") -> None:
        self.stage = Stage()
        step = self.stage.order(plan_text(*([] if extra else [BETTER]), extra=extra)).plan.steps[0]
        target = open_target(self.stage.placed[0], self.stage.tools)
        self.contact = make_contact(target, step, self.stage.tools)
        host = self.stage.host
        host.files[self.contact.edit.path] = self.contact.edit.after
        host.restart()
        self.stage.world.seconds += 10

    def effect(self) -> Effect:
        target = self.contact.target
        return effect_of(self.contact, target.inspect(), target.pages(), [], self.stage.tools.secrets)


def test_what_the_engine_reports_is_the_furthest_place() -> None:
    effect = Change().effect()
    assert (effect.furthest, effect.effective, effect.also_moved) == ("engine", True, ())
    assert effect.to_json()["values"]["engine"] == {"before": "'4'", "after": "'8'"}


def test_an_engine_that_goes_on_reporting_the_old_value_was_not_reached() -> None:
    change = Change()
    change.stage.host.reported = lambda argv: {"total_slots": 4}
    assert not change.effect().effective


def test_a_plain_variable_is_effective_in_the_process() -> None:
    extra = "  - change: {environment: {name: OMP_NUM_THREADS, to: '2'}}\n    expect: neutral\n"
    change = Change(extra)
    assert (change.effect().furthest, change.effect().effective) == ("process", True)
    assert change.stage.host.process is not None
    change.stage.host.process.environ["OMP_NUM_THREADS"] = "1"
    assert not change.effect().effective


def test_another_file_that_moved_is_named() -> None:
    change = Change()
    change.stage.host.files[ENV] += b"X=1\n"
    assert change.effect().also_moved == (f"file {ENV}",)


def test_a_file_that_is_gone_is_named() -> None:
    change = Change()
    del change.stage.host.files[ENV]
    assert f"file {ENV}" in change.effect().also_moved


def test_the_edited_file_itself_is_no_other_file() -> None:
    change = Change()
    assert change.contact.edit.path == UNIT
    assert change.effect().also_moved == ()


def test_another_setting_and_another_variable_are_named() -> None:
    change = Change()
    process = change.stage.host.process
    assert process is not None
    process.argv += ["--threads", "2"]
    process.environ["EXTRA"] = "1"
    assert change.effect().also_moved == ("setting threads", "variable EXTRA")


def test_what_systemd_makes_anew_is_not_named() -> None:
    change = Change()
    assert change.stage.host.process is not None
    change.stage.host.process.environ["INVOCATION_ID"] = "1"
    assert change.effect().also_moved == ()
