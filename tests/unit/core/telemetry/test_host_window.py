"""Several looks at a host become rates, peaks and counts; what no look holds stays missing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from changectl.core.telemetry.host_figures import COUNTS, FIGURES
from changectl.core.telemetry.host_window import host_window

SECOND = 1_000_000_000


def looks(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at": 1e9 + number, "clock": float(number), **part} for number, part in enumerate(parts)]


def test_one_full_core_shows_although_the_average_is_low() -> None:
    busy = [{"cores": [[100 * n, 0, 0, 100 * n], [0, 0, 0, 100 * n]]} for n in range(4)]
    found = host_window(looks(*busy))

    assert found.spreads["cpu"].mean == 0.5
    assert (found.spreads["busiest_core"].mean, found.spreads["busiest_core"].of) == (1.0, "core 0")


def test_the_busiest_thread_is_named_with_its_share_of_a_core() -> None:
    threads = [{"threads": {"7": [SECOND * n, 0], "8": [SECOND * n // 10, SECOND * n // 2]}} for n in range(3)]
    found = host_window(looks(*threads), threads={"7": "llama-server", "8": "http"})

    assert (found.spreads["busiest_thread"].mean, found.spreads["busiest_thread"].of) == (1.0, "llama-server")
    assert (found.spreads["run_delay"].mean, found.spreads["run_delay"].of) == (0.5, "http")
    assert found.spreads["service_cpu"].mean == pytest.approx(1.1)


def test_a_kernel_that_does_not_tell_how_long_threads_wait_leaves_that_missing() -> None:
    found = host_window(looks({"threads": {"7": [0, -1]}}, {"threads": {"7": [SECOND, -1]}}))

    assert found.spreads["busiest_thread"].mean == 1.0
    assert "run_delay" in found.missing


def test_swap_is_a_rate_and_not_what_lies_in_it() -> None:
    found = host_window(looks({"vmstat": {"pswpin": 100}}, {"vmstat": {"pswpin": 100}}, {"vmstat": {"pswpin": 356}}))

    assert found.spreads["swap_in"].mean == 256 * 4096 / 2
    assert found.spreads["swap_in"].most == 256 * 4096


def test_a_look_that_got_lost_changes_no_mean() -> None:
    every = looks(*({"pressure": {"cpu": 500_000 * n, "memory": 0, "io": 0}} for n in range(5)))

    assert host_window(every).spreads["psi_cpu"].mean == 0.5
    assert host_window([every[0], *every[2:]]).spreads["psi_cpu"].mean == 0.5


def test_a_counter_that_fell_says_nothing_for_that_pair() -> None:
    found = host_window(looks({"vmstat": {"pswpin": 500}}, {"vmstat": {"pswpin": 0}}, {"vmstat": {"pswpin": 1}}))

    assert found.spreads["swap_in"].most == 4096


def test_another_main_process_is_a_restart_and_a_service_that_never_ran_has_none() -> None:
    found = host_window(looks({"process": [10, 5]}, {"process": None}, {"process": [11, 9]}, {"process": [11, 9]}))

    assert found.counts["restarts"] == 1
    assert "restarts" in host_window(looks({"process": None})).missing


def test_the_kill_of_a_neighbour_is_no_kill_of_the_service() -> None:
    found = host_window(looks({"vmstat": {"oom_kill": 1}, "memory_events": {"oom_kill": 0}},
                              {"vmstat": {"oom_kill": 2}, "memory_events": {"oom_kill": 0}}))  # fmt: skip

    assert (found.counts["oom_kills"], found.counts["service_oom_kills"]) == (1, 0)


def test_a_gpu_that_does_not_tell_its_use_is_missing_and_the_busiest_one_counts() -> None:
    gpus = [
        {"gpus": [{"index": 0, "utilisation_gpu": 4294967295, "memory_used": 5}, {"index": 1, "utilisation_gpu": 40}]}
    ]
    found = host_window(looks(*gpus))

    assert (found.spreads["gpu_use"].mean, found.spreads["gpu_use"].of) == (0.4, "GPU 1")
    assert found.spreads["gpu_memory"].of == "GPU 0"
    assert "gpu_power" in found.missing


def test_what_could_not_be_read_says_why() -> None:
    found = host_window(looks({}), {"pressure": "ValueError: /proc/pressure/cpu is not there or cannot be read"})

    assert "/proc/pressure/cpu" in found.missing["psi_io"]
    assert found.missing["cpu"] == "not read"


@given(some.lists(some.dictionaries(some.sampled_from(["cores", "vmstat", "tcp", "threads", "queue", "rss", "process"]),
                                    some.just(None)), max_size=4))  # fmt: skip
def test_every_figure_is_either_there_or_missing(parts: list[dict[str, Any]]) -> None:
    found = host_window(looks(*parts))

    assert {*found.spreads, *found.counts, *found.missing} == {*FIGURES, *COUNTS}
    assert not found.spreads
