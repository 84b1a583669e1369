"""The demo believes exit codes and the record, and says so when something is not as promised."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from changectl.demo.__main__ import main
from changectl.demo.commands import Changectl
from changectl.demo.server import NotAsPromised, Server
from changectl.demo.story import Demo, first_token

# Ends with the next exit code of its list each time it is called, and prints what the second file says.
FAKE = """
import pathlib, sys
codes = pathlib.Path("codes").read_text().split()
pathlib.Path("codes").write_text(" ".join(codes[1:]))
pathlib.Path("calls").open("a").write(" ".join(sys.argv[1:]) + "\\n")
print(pathlib.Path("answer").read_text())
sys.exit(int(codes[0]))
"""


def demo_ending_with(folder: Path, codes: str, answer: str = "{}") -> Demo:
    (folder / "codes").write_text(codes)
    (folder / "answer").write_text(answer)
    return Demo(folder, Server(folder, 1), Changectl(folder, [sys.executable, "-c", FAKE]))


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_the_expected_exit_code_ends_the_matter(tmp_path: Path) -> None:
    demo_ending_with(tmp_path, "4").apply("plan.yml", expected=4)
    assert calls(tmp_path) == ["apply plan.yml"]


def test_a_disturbed_measurement_is_told_and_repeated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    demo_ending_with(tmp_path, "5 5 0").apply("plan.yml", expected=0)
    assert len(calls(tmp_path)) == 3
    assert "Exit code 5" in capfd.readouterr().out


def test_a_disturbed_baseline_is_told_and_repeated_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    story = '{"runs": [{"run": "R1"}], "steps": [{"reason": "baseline_invalid"}]}'
    demo_ending_with(tmp_path, "3 0 0 0", story).apply("plan.yml", expected=0)

    assert [call.split()[0] for call in calls(tmp_path)] == ["apply", "history", "show", "apply"]
    assert "has changed nothing" in capfd.readouterr().out


def test_any_other_refusal_is_not_what_was_promised(tmp_path: Path) -> None:
    story = '{"runs": [{"run": "R1"}], "steps": [{"reason": "precheck_failed"}]}'
    with pytest.raises(NotAsPromised, match=r"exit code 3 \(precheck_failed\)"):
        demo_ending_with(tmp_path, "3 0 0 0", story).apply("plan.yml", expected=0)
    assert calls(tmp_path)[1:] == ["history --limit 1 --json", "show R1 --json"]


def test_four_disturbed_measurements_are_not_what_was_promised(tmp_path: Path) -> None:
    with pytest.raises(NotAsPromised, match="exit code 5; 0 was promised"):
        demo_ending_with(tmp_path, "5 5 5 5 0").apply("plan.yml", expected=0)


@pytest.mark.parametrize("code", ["1", "4", "6", "130"])
def test_any_other_exit_code_is_never_repeated(tmp_path: Path, code: str) -> None:
    with pytest.raises(NotAsPromised, match=f"exit code {code}"):
        demo_ending_with(tmp_path, f"{code} 0").apply("plan.yml", expected=0)
    assert len(calls(tmp_path)) == 1


@pytest.mark.parametrize("answer", ["", "[]", "no json"])
def test_an_answer_that_is_no_json_object_is_not_believed(tmp_path: Path, answer: str) -> None:
    with pytest.raises(NotAsPromised, match="did not print a JSON object"):
        demo_ending_with(tmp_path, "0", answer).changectl.read("history")


@pytest.mark.parametrize("rows", [[], [{"metric": "tpot_p50", "before": 1, "after": 2}],
                                  [{"metric": "ttft_user_p50", "before": None, "after": 2}]])  # fmt: skip
def test_a_record_without_the_figure_is_not_as_promised(rows: list[dict]) -> None:
    with pytest.raises(NotAsPromised):
        first_token({"steps": [{"rows": rows}]})


def test_a_folder_with_something_else_in_it_ends_the_demo_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    assert main(["--dir", str(tmp_path)]) == 2
    assert "no demo made it" in capsys.readouterr().err
