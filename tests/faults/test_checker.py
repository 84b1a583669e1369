"""The judge of faults is judged first: a real engine is put into every state by hand, and it has to name it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults import strikes
from tests.faults.bench import settings_text
from tests.faults.checker import Reach, judge
from tests.faults.scene import KILLED, NEW, RUN, Scene
from tests.faults.told import Told, read_journal

pytest.importorskip("xllamacpp", reason="the engine comes with the extra `demo`")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    strikes.end_engine(made.bench)


def test_what_nobody_touched_is_restored(scene: Scene) -> None:
    scene.journal("run.opened")
    assert scene.judged().word == "restored"


def test_what_was_changed_and_brought_back_is_restored(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.write(NEW)
    scene.restart()
    scene.write(settings_text())
    scene.restart()
    assert scene.judged().word == "restored"


def test_an_ended_run_is_restored_only_with_an_end_in_the_journal(scene: Scene) -> None:
    scene.journal("run.opened")
    assert scene.judged(final=True).word == "unknown"
    scene.journal("step.closed", "run.closed", outcome="reverted")
    assert scene.judged(final=True).word == "restored"


@pytest.mark.parametrize("outcome", ["revert_failed", "revert_unverified", "invented"])
def test_an_end_that_calls_for_a_person_without_need_is_unknown(scene: Scene, outcome: str) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", "run.closed", outcome=outcome)
    assert scene.judged(6, final=True).word == "unknown"


def test_a_later_run_may_write_the_end(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.journal("run.opened", "run.closed", run="20261130-080100-chat-bcde", reverts=RUN, outcome="reverted")
    assert scene.judged(final=True).word == "restored"


def test_a_change_that_the_journal_calls_kept_is_kept(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", "run.closed", outcome="kept")
    scene.write(NEW)
    scene.restart()
    assert scene.judged(0, final=True).word == "kept"


def test_the_record_of_the_host_alone_makes_a_change_kept(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.disarmed("kept")
    scene.write(NEW)
    scene.restart()
    assert scene.judged().word == "kept"


def test_a_record_of_another_run_keeps_nothing(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.disarmed("kept", run="20261129-080000-chat-zzzz")
    scene.write(NEW)
    scene.restart()
    assert scene.judged().word == "unknown"


def test_a_change_in_force_that_nobody_judged_is_unknown(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.write(NEW)
    scene.restart()
    judged = scene.judged()
    assert judged.word == "unknown"
    assert "no record says" in str(judged)


@pytest.mark.parametrize("outcome", ["kept", "kept_unjudged"])
def test_saved_bytes_under_a_record_of_kept_are_unknown(scene: Scene, outcome: str) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", outcome=outcome)
    assert scene.judged().word == "unknown"


def test_saved_bytes_under_a_hosts_record_of_kept_are_unknown(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.disarmed("kept")
    assert scene.judged().word == "unknown"


def test_a_change_in_force_under_a_record_of_reverted_is_unknown(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", outcome="reverted")
    scene.disarmed("kept")
    scene.write(NEW)
    scene.restart()
    assert scene.judged().word == "unknown"


@pytest.mark.parametrize("code", [1, 3, 4, 5, 130])
def test_an_exit_code_that_denies_a_kept_change_is_unknown(scene: Scene, code: int) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", outcome="kept")
    scene.write(NEW)
    scene.restart()
    assert scene.judged(code).word == "unknown"


def test_exit_code_0_over_saved_bytes_is_unknown(scene: Scene) -> None:
    scene.journal("run.opened")
    assert scene.judged(0).word == "unknown"


def test_a_damaged_journal_is_unknown(scene: Scene) -> None:
    scene.bench.database.parent.mkdir()
    scene.bench.database.write_bytes(b"not a database, whatever its name says" * 40)
    assert scene.judged().word == "unknown"


def test_a_damaged_record_of_the_host_is_unknown(scene: Scene) -> None:
    scene.journal("run.opened")
    scene.disarmed('kept"')
    assert scene.judged().word == "unknown"


def _stop(scene: Scene) -> None:
    scene.stop()


def _new_file_old_process(scene: Scene) -> None:
    scene.write(NEW)


def _old_file_new_process(scene: Scene) -> None:
    scene.write(NEW)
    scene.restart()
    scene.write(settings_text())


def _file_of_somebody_else(scene: Scene) -> None:
    scene.write("ARGS=\n" + settings_text())


def _no_file(scene: Scene) -> None:
    scene.bench.settings.unlink()


def _other_mode(scene: Scene) -> None:
    scene.bench.settings.chmod(0o644)


def _no_attributes(scene: Scene) -> None:
    os.removexattr(scene.bench.settings, "user.origin")


def _two_engines(scene: Scene) -> None:
    words = [sys.executable, "-c", "import time; time.sleep(60)", "--alias", "chat", "--port", str(scene.bench.port)]
    subprocess.Popen(words, cwd="/")


def _started_before_its_file(scene: Scene) -> None:
    scene.restart()
    time.sleep(0.2)
    scene.write(settings_text())


HALVES: list[Callable[[Scene], None]] = [
    _stop, _new_file_old_process, _old_file_new_process, _file_of_somebody_else, _no_file, _other_mode,
    _no_attributes, _two_engines, _started_before_its_file,
]  # fmt: skip


@pytest.mark.parametrize("spoil", HALVES, ids=lambda spoil: spoil.__name__.strip("_"))
def test_what_is_neither_the_one_nor_the_other_is_half(scene: Scene, spoil: Callable[[Scene], None]) -> None:
    scene.journal("run.opened")
    scene.journal("step.closed", outcome="kept")  # no record makes a whole of it
    spoil(scene)
    assert scene.judged().word == "half"


def test_an_engine_that_hangs_is_half(scene: Scene) -> None:
    scene.journal("run.opened")
    reach = scene.bench.reach()
    impatient = Reach({**reach.question, "patience": 0.5}, python=sys.executable)
    strikes.send_all(scene.bench.engines(), signal.SIGSTOP)
    assert judge(scene.expected, impatient.look(), Told(RUN), KILLED, final=False).word == "half"


def test_a_run_that_never_reached_its_journal_left_everything_as_it_was(scene: Scene) -> None:
    assert read_journal(scene.bench.database) == Told()
    assert scene.judged(final=True).word == "restored"


def test_looking_leaves_no_trace_in_the_journals_folder(scene: Scene) -> None:
    scene.journal("run.opened")
    folder = scene.bench.database.parent
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    scene.judged()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
