"""At boot: files come back, nothing is started, and the unit that sees to it holds whatever paths are called."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, boot, boot_unit, keeper
from changectl_host.state import Run, boot_id


class Settled:
    """Counts how often the host was told to read its units anew."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


class Watch:
    """Counts how often the dead-man was asked to keep watch."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, _: Run) -> None:
        self.times += 1


def nobody(run: Run) -> None:
    raise AssertionError(f"nobody has to keep watch over {run.name}")


def run_of(host: Any) -> Run:
    return Run(host.run, str(host.state))


def cut_off(host: Any, **settings: Any) -> Path:
    """A change that is armed and written, and a host that lost its power: the sleeper is gone."""
    path: Path = host.edited()
    host.lease()
    host.arm(path, **settings)
    host.write(path, b"old", b"new")
    os.kill(host.keeper(), signal.SIGKILL)
    host.wait(lambda: host.keeper() is None)
    return path


def test_after_a_restart_the_files_come_back_and_nothing_is_started(host: Any) -> None:
    started = host.folder / "started"
    manager = {"command": {"start": ["touch", str(started)], "pid": {"file": "/no/such/pid"}}}
    path = cut_off(host, manager=manager, service={"stop_timeout": 3})
    settled = Settled()
    fired = boot.at_boot(run_of(host), "another-boot", settled, nobody)
    assert fired is not None
    assert (fired["by"], fired["outcome"], fired["files"]) == ("boot", "restored", {str(path): "restored"})
    assert (path.read_bytes(), started.exists(), settled.times) == (b"old", False, 2)
    now = host.standing()
    assert (now["armed"], now["lease"]["live"], now["generation"]) == (None, False, 2)
    assert host.keeper() is None
    assert host.lease(run="R-2", nonce="other")["taken_over"]["run"] == "R-1"
    assert boot.at_boot(run_of(host), "another-boot", settled, nobody) is None


def test_within_the_same_boot_it_does_nothing(host: Any) -> None:
    path = cut_off(host)
    settled = Settled()
    assert boot.at_boot(run_of(host), boot_id(), settled, nobody) is None
    assert (path.read_bytes(), settled.times) == (b"new", 0)
    assert host.standing()["lease"]["live"] is True
    done = subprocess.run(keeper.words(run_of(host), "boot"), check=False)
    assert (done.returncode, path.read_bytes()) == (0, b"new")


def test_a_judged_change_stays_over_a_restart(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    host.disarm("kept")
    assert boot.at_boot(run_of(host), "another-boot", Settled(), nobody) is None
    assert path.read_bytes() == b"new"


def test_a_kill_between_the_decision_and_its_tidying_up_changes_nothing(host: Any) -> None:
    path = cut_off(host)
    armed = (host.run_folder / "armed.json").read_bytes()
    host.disarm("kept")
    (host.run_folder / "armed.json").write_bytes(armed)
    assert host.standing()["armed"] is None
    assert boot.at_boot(run_of(host), "another-boot", Settled(), nobody) is None
    assert path.read_bytes() == b"new"


def test_where_nothing_was_written_yet_there_is_nothing_to_bring_back(host: Any) -> None:
    path = host.edited()
    host.lease()
    host.arm(path)
    path.write_bytes(b"theirs")
    fired = boot.at_boot(run_of(host), "another-boot", Settled(), nobody)
    assert fired is not None
    assert (fired["outcome"], path.read_bytes()) == ("nothing_to_do", b"theirs")


def test_what_cannot_be_brought_back_at_boot_stays_armed_and_is_said(host: Any) -> None:
    path = cut_off(host)
    path.write_bytes(b"theirs")
    settled = Settled()
    fired = boot.at_boot(run_of(host), "another-boot", settled, watch := Watch())
    assert fired is not None
    assert (fired["outcome"], fired["reason"], settled.times) == ("failed", "changed_by_other", 0)
    assert watch.times == 1
    assert host.standing()["armed"] is not None
    with pytest.raises(Failure) as caught:
        host.lease(run="R-2", nonce="other")
    assert caught.value.reason == "armed_by_other"
    # Its own recovery takes it over, arms it anew and has somebody who keeps watch.
    host.lease(generation=fired["generation"] + 1, nonce="second")
    assert host.call("arm", generation=fired["generation"] + 1, nonce="second")["armed"]
    assert host.standing()["keeper_running"]


def test_a_host_that_did_not_read_the_restored_units_has_not_been_brought_back(host: Any) -> None:
    path = cut_off(host)

    def refuse() -> None:
        raise Failure("not_reloaded", "systemctl daemon-reload: Connection timed out")

    fired = boot.at_boot(run_of(host), "another-boot", refuse, watch := Watch())
    assert fired is not None
    assert (fired["outcome"], fired["reason"], watch.times) == ("failed", "not_reloaded", 1)
    assert path.read_bytes() == b"old"
    assert host.standing()["armed"] is not None
    fired = boot.at_boot(run_of(host), "another-boot", Settled(), nobody)
    assert fired is not None
    assert (fired["outcome"], host.standing()["armed"]) == ("nothing_to_do", None)


def test_what_fails_at_boot_is_tried_again_by_the_dead_man(host: Any) -> None:
    path = cut_off(host)
    path.write_bytes(b"theirs")
    fired = boot.at_boot(run_of(host), "another-boot", Settled(), keeper.begin)
    assert fired is not None
    assert fired["outcome"] == "failed"
    host.wait(lambda: host.standing()["fired"]["by"] == "deadman")
    path.write_bytes(b"new")  # the stranger's edit is gone
    host.wait(lambda: host.standing()["armed"] is None)
    assert (host.standing()["fired"]["outcome"], path.read_bytes()) == ("restored", b"old")


def test_what_boot_cannot_even_begin_is_left_to_the_dead_man(host: Any) -> None:
    cut_off(host)
    (host.run_folder / "disarmed.json").write_text("{torn")
    watch = Watch()
    with pytest.raises(Failure) as caught:
        boot.at_boot(run_of(host), "another-boot", Settled(), watch)
    assert (caught.value.reason, watch.times) == ("damaged_state", 1)


ODD = 'a %n "q" $HOME \\x b'


def test_a_unit_names_its_run_and_waits_for_disks_and_lets_the_engine_wait(place: Path) -> None:
    armed = {"manager": {"systemd": {"unit": "vllm.service"}}}
    run = Run("R-1/2", str(place))
    text = boot_unit.text(run, armed, ["/etc/vllm/chat.yaml", "/srv/cfg/x"])
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert text.startswith(f"# run: R-1/2 in {place}\n")
    assert lines["Before"] == "vllm.service multi-user.target shutdown.target"
    assert shlex.split(lines["RequiresMountsFor"])[:2] == [str(place), sys.executable]
    assert {"/etc/vllm", "/srv/cfg"} < set(shlex.split(lines["RequiresMountsFor"]))
    assert shlex.split(lines["ExecStart"]) == keeper.words(run, "boot")
    assert lines["DefaultDependencies"] == "no"
    assert "[Install]" not in text


def test_a_services_own_manager_of_a_user_is_not_waited_for_by_name(place: Path) -> None:
    armed = {"manager": {"systemd": {"unit": "vllm.service", "user_manager": True}}}
    assert "vllm.service" not in boot_unit.text(Run("R-1", str(place)), armed, [])


def test_odd_paths_are_quoted_as_systemd_reads_them(place: Path) -> None:
    run = Run("R-1", str(place / ODD))
    text = boot_unit.text(run, {}, [f"/etc/{ODD}/x"])
    quoted = 'a %%n \\"q\\" $HOME \\\\x b'
    assert f'"/etc/{quoted}"' in text
    assert f'"{place}/{quoted.replace("$", "$$")}/runs/R-1/program.pyz"' in text
    with pytest.raises(Failure):
        boot_unit.text(Run("R-1", str(place / "a\nExecStart=/bin/evil")), {}, [])


def test_the_unit_is_enabled_by_a_link_and_only_its_own_run_takes_it_away(place: Path) -> None:
    units = place / "units"
    mine, other = Run("R-1", str(place / "s")), Run("R-2", str(place / "s"))
    assert boot_unit.install(mine, {}, [], str(units)) == ""
    link = units / "sysinit.target.wants" / boot_unit.NAME
    assert link.resolve() == units / boot_unit.NAME
    assert (units / boot_unit.NAME).stat().st_mode & 0o777 == 0o644
    assert boot_unit.owner(str(units)) == f"R-1 in {place}/s"
    assert boot_unit.remove(other, str(units)) is False
    assert link.exists()
    assert boot_unit.remove(mine, str(units)) is True
    assert not any(path.is_file() or path.is_symlink() for path in units.rglob("*"))
    assert boot_unit.remove(mine, str(units)) is False


def test_a_state_folder_in_memory_is_not_called_safe(place: Path) -> None:
    run = Run("R-1", "/dev/shm/changectl-test-no-such-folder")
    assert "lies in memory" in boot_unit.install(run, {}, [], str(place))
    assert list(place.iterdir()) == []
