"""What a person copies into a shell arrives there whole: on a line of its own, not folded, nothing glued on."""

from __future__ import annotations

import io

import pytest
from tests.unit.core.history.history_samples import Tape
from tests.unit.reports.block_text import lines

from changectl.cli import _failures
from changectl.cli._present import print_blocks
from changectl.core.doctor.examination import Examination
from changectl.core.doctor.facts import Check
from changectl.core.errors import Refused
from changectl.core.history import reading as history
from changectl.reports import diff, doctor, ending, status
from changectl.reports._blocks import Block, Command, Line
from changectl.reports._commands import apart, told
from changectl.reports.printer import Printer

RUN = "20261130-115258-a-service-with-a-long-name-ez4s"
ACCEPT = f"changectl revert {RUN} --accept-present --reason TEXT"


def on_terminal(blocks: list[Block], width: int = 60) -> list[str]:
    out = io.StringIO()
    print_blocks(blocks, Printer(out, out, terminal=True, width=width))
    return out.getvalue().splitlines()


def needs_person() -> Tape:
    tape = Tape()
    tape.opened(RUN)
    tape.step(RUN, "revert_failed", "regressed")
    tape.closed(RUN, "revert_failed", 6)
    return tape


def test_a_command_is_one_line_however_narrow_the_terminal_is() -> None:
    shown = on_terminal([Command(ACCEPT, "or accept what is there")], width=20)

    assert shown[-1] == f"  {ACCEPT}"
    assert " ".join(shown[:-1]) == "or accept what is there:"


def test_a_foreign_line_break_in_a_command_does_not_begin_another_line() -> None:
    assert on_terminal([Command("rm '/etc/x\nrm -r /'")]) == ["  rm '/etc/x\\nrm -r /'"]


@pytest.mark.parametrize(
    "blocks",
    [
        ending.as_blocks(history.run_story(needs_person().events), 6),
        status.as_blocks(history.services(history.runs(needs_person().events)), {}),
    ],
)
def test_every_way_on_after_a_failed_way_back_can_be_copied(blocks: list[Block]) -> None:
    shown = on_terminal(blocks)

    for command in (f"changectl show {RUN}", f"changectl revert {RUN}", ACCEPT):
        assert f"  {command}" in shown


def test_what_is_in_force_is_not_known_while_a_way_back_is_not_proven_or_a_run_is_open() -> None:
    cut_off = Tape()
    cut_off.opened(RUN)
    for tape in (needs_person(), cut_off):
        text = lines(status.as_blocks(history.services(history.runs(tape.events)), {}))
        assert f"in force: not known until run {RUN} is settled" in text


def test_a_run_that_was_cut_off_and_a_revert_without_edits_have_theirs() -> None:
    tape = Tape()
    tape.opened(RUN)
    assert f"  changectl recover {RUN}" in on_terminal(
        status.as_blocks(history.services(history.runs(tape.events)), {})
    )

    tape = Tape()
    tape.opened("r2", steps=0, reverts=RUN)
    assert f"  changectl diff {RUN}" in on_terminal(diff.as_blocks(history.run_story(tape.events)))


def test_a_refusal_in_the_record_ends_with_its_command() -> None:
    tape = Tape()
    tape.opened("r1")
    why = f"what run {RUN} left behind is not known: it never ended. Settle it first: changectl recover {RUN}"
    tape.add("r1", "step.started", step=1)
    tape.add("r1", "step.closed", {"outcome": "refused", "reason": "unfinished_run", "text": why}, step=1)
    tape.closed("r1", "refused", 3)

    assert f"  changectl recover {RUN}" in on_terminal(ending.as_blocks(history.run_story(tape.events), 3))


def test_each_thing_that_a_doctor_would_do_is_a_line_of_its_own() -> None:
    by_hand = f"python3 /var/lib/changectl/runs/{RUN}.1/program.pyz restore"
    todo = f"{RUN}: changectl recover {RUN}\nor on the host itself: {by_hand}"
    found = Examination("gpu1", None, (Check("leftovers", "failed", "armed", todo),))
    shown = on_terminal(doctor.as_blocks([found]))

    assert f"  changectl recover {RUN}" in shown
    assert f"  {by_hand}" in shown


def test_an_error_sets_its_command_apart(capsys: pytest.CaptureFixture[str]) -> None:
    error = Refused(
        f"service chat is locked; if that is gone: changectl unlock chat --reason TEXT\nSettle it: {ACCEPT}"
    )

    assert _failures.report(error, as_json=False, debug=False) == 3
    assert capsys.readouterr().err.splitlines() == [
        "service chat is locked; if that is gone:",
        "  changectl unlock chat --reason TEXT",
        "Settle it:",
        f"  {ACCEPT}",
    ]


@pytest.mark.parametrize("text", ["", "no command: here", "let systemctl: be", "python3: not found", "a\nb: c"])
def test_what_is_no_command_stays_as_it_is(text: str) -> None:
    assert apart(text) == text
    assert told(text) == [Line(line) for line in text.splitlines()]
