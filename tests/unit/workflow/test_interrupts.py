"""Signals are remembered, and raised only where the run asks."""

from __future__ import annotations

import os
import signal

import pytest

from changectl.workflow.interrupts import SIGNALS, Interrupted, Interrupts


def test_a_signal_does_nothing_until_it_is_asked_for() -> None:
    interrupts = Interrupts()
    with interrupts.listening():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            interrupts.check()
        interrupts.check()  # raised once


def test_without_a_signal_nothing_is_raised() -> None:
    Interrupts().check()


def test_a_side_effect_runs_to_its_end_first() -> None:
    interrupts, done = Interrupts(), []

    def act() -> None:
        with interrupts.shielded():
            os.kill(os.getpid(), signal.SIGINT)
            interrupts.check()
            done.append("act")

    with interrupts.listening(), pytest.raises(Interrupted):
        act()
    assert done == ["act"]


def test_an_error_of_a_side_effect_comes_before_the_signal() -> None:
    interrupts = Interrupts()

    def act() -> None:
        with interrupts.shielded():
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError

    with interrupts.listening(), pytest.raises(ValueError):
        act()
    with pytest.raises(Interrupted):
        interrupts.check()


def test_on_the_way_back_signals_are_forgotten() -> None:
    interrupts = Interrupts()
    with interrupts.listening():
        with interrupts.ignored():
            os.kill(os.getpid(), signal.SIGINT)
            with interrupts.shielded():
                interrupts.check()
        interrupts.check()


def test_the_former_handlers_come_back_even_after_an_error() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    def run() -> None:
        with Interrupts().listening():
            assert [signal.getsignal(number) for number in SIGNALS] != before
            raise ValueError

    with pytest.raises(ValueError):
        run()
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_an_interrupt_passes_every_except_exception_and_ends_a_command_as_ctrl_c_does() -> None:
    assert not issubclass(Interrupted, Exception)
    assert issubclass(Interrupted, KeyboardInterrupt)
