"""The benches that need no lab, shortened for CI: limits are generous, so that only a real loss of speed fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench import bench_cli, bench_generator, bench_judge, bench_lag, bench_manifest
from tests.bench.table import Row, table

MEGABYTE = 1 << 20


def test_help_is_there_before_ansible_has_said_its_version() -> None:
    ours, theirs = bench_cli.medians(rounds=3)
    assert ours < theirs


def test_the_manifest_of_a_model_is_about_as_fast_as_sha256sum_and_much_faster_where_nothing_changed(
    tmp_path: Path,
) -> None:
    bench_manifest.write_folder(tmp_path, files=4, size=64 * MEGABYTE)
    full, rival, again = bench_manifest.measure(tmp_path, rounds=3)
    assert full < 1.5 * rival
    assert again < 0.2 * rival


def test_the_generator_stamps_what_the_server_sent_within_milliseconds(tmp_path: Path) -> None:
    runs = [bench_generator.ours(tmp_path) for _ in range(2)]
    for metric in ("ttft", "tpot"):
        medians = [bench_generator.percentile(run[metric], 50) for run in runs]
        assert min(medians) < 10 * bench_generator.FLOORS["p50"], metric


def test_sixty_four_streams_and_a_hundred_requests_a_second_are_sent_in_time(tmp_path: Path) -> None:
    """The floor is 5 ms for the latest of a hundred; here, on a machine that may be busy, 50 ms for the median."""
    for level, pace in ((bench_lag.closed(64, 2.0), bench_lag.CLOSED), (bench_lag.opened(100, 2.0), bench_lag.OPEN)):
        late = bench_lag.ours(tmp_path, level, pace)
        assert len(late) >= 64
        assert bench_generator.percentile(late, 50) < 10 * bench_lag.FLOOR


def test_raw_records_are_judged_about_as_fast_as_they_can_be_read() -> None:
    """A tenth of the bench's records; the floor is 2 s for all of them on a machine that has nothing else to do."""
    ours, rival, verdict = bench_judge.measure(records=32_000, rounds=3)
    assert verdict == "unchanged"
    assert ours < 3 * rival


@pytest.mark.parametrize(("ours", "held"), [(2.9, True), (3.0, True), (3.1, False), (float("nan"), False)])
def test_a_floor_is_held_up_to_its_limit_and_never_by_a_figure_that_is_none(ours: float, held: bool) -> None:
    row = Row("apply", "a change", "at most 3 times", ours, 3.0, 1.0, note="median of 5")
    assert row.held is held
    assert ("pass" if held else "FAIL") in table([row])
    assert "median of 5" in table([row])


def test_the_time_of_the_rival_is_that_of_a_command_that_worked() -> None:
    with pytest.raises(FileNotFoundError):
        bench_cli.seconds("no-such-command")
    assert bench_cli.seconds("ansible", "--version") > 0
