from __future__ import annotations

from pathlib import Path

from tests.unit.cli.cli_runner import Run

PLAN = "changeplans/0001-more-sequences.yml"


def test_a_good_plan_is_told_one_thing_a_line(project: Path, run: Run) -> None:
    ended = run("validate", PLAN)

    assert ended.code == 0
    assert "Step 1: parameter max-num-seqs: whatever it is -> 128" in ended.out.splitlines()
    assert "- limits: tpot_p95 <= 100ms (accept)" in "\n".join(ended.out.splitlines())
    assert all(line.startswith(("- ", "Step ", f"{PLAN}: ")) for line in ended.out.splitlines() if line)
    assert "the old state comes back" in ended.out
    assert "60 requests at low (1 stream); not measured: normal (others may be served" in ended.out


def test_a_service_file_in_place_of_a_plan_is_one_problem(project: Path, run: Run) -> None:
    ended = run("validate", "inventory/services/chat.yml")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        "inventory/services/chat.yml: this is a service file, and not a plan",
        "  name a plan of that service; its service file is checked with it",
    ]


def test_a_level_that_would_not_be_measured_is_refused_in_the_plan(project: Path, run: Run) -> None:
    text = (project / PLAN).read_text().replace("{rps_ok: +10%}", "{rps_ok at normal: +10%}")
    (project / PLAN).write_text(text)

    ended = run("validate", PLAN)

    assert ended.code == 2
    assert f"{PLAN}:7:14: steps/1/expect/rps_ok at normal: the level `normal` will not be measured" in ended.err
    assert "limits: {load_on_live: true}` in inventory/services/chat.yml" in ended.err


def test_a_service_without_low_is_refused_where_its_levels_stand(project: Path, run: Run) -> None:
    service = project / "inventory/services/chat.yml"
    service.write_text(service.read_text().replace("low: 1 stream, ", ""))

    ended = run("validate", PLAN)

    assert ended.code == 2
    assert "inventory/services/chat.yml:16:11: conditions/levels: none of these levels is called `low`" in ended.err


def test_json_says_the_same(project: Path, run: Run) -> None:
    document = run("validate", PLAN, "--json").json

    (plan,) = document["plans"]
    assert (document["exit_code"], plan["service"], plan["levels"]) == (
        0,
        "chat",
        {"low": "1 stream"},
    )
    assert (plan["not_measured"], plan["requests_per_level"]) == (["normal"], 60)
    assert plan["steps"][0]["change"] == "parameter max-num-seqs: whatever it is -> 128"


def test_a_broken_plan_is_exit_code_2_with_place_path_and_hint(project: Path, run: Run) -> None:
    (project / PLAN).write_text((project / PLAN).read_text().replace("parameter:", "paramter:"))

    ended = run("validate", PLAN)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        f"{PLAN}:6:14: steps/1/change/paramter: unknown kind of change `paramter`\n  did you mean"
    )


def test_a_broken_plan_is_one_json_document(project: Path, run: Run) -> None:
    (project / PLAN).write_text((project / PLAN).read_text().replace("effort: quick", "effort: slow"))

    ended = run("validate", PLAN, "--json")

    assert (ended.code, ended.err) == (2, "")
    assert ended.json["exit_code"] == 2
    assert ended.json["error"]["reason"] == "bad_input"
    (problem,) = ended.json["error"]["problems"]
    assert (problem["file"], problem["line"], problem["column"], problem["path"]) == (PLAN, 4, 9, "effort")
    assert "write `effort: quick`" in problem["hint"]


def test_all_plans_are_read_before_it_ends(project: Path, run: Run) -> None:
    ended = run("validate", "no-such.yml", PLAN, "neither.yml")

    assert ended.code == 2
    assert "no-such.yml: there is no such file" in ended.err
    assert "neither.yml: there is no such file" in ended.err


def test_a_group_that_the_inventory_does_not_have_is_refused(project: Path, run: Run) -> None:
    service = project / "inventory/services/chat.yml"
    service.write_text(service.read_text().replace("group: gpu ", "group: gpus "))

    ended = run("validate", PLAN)

    assert ended.code == 2
    assert "instances/group: the inventory has no group or host `gpus`\n  did you mean `gpu`?" in ended.err


def test_foreign_text_cannot_steer_the_terminal(project: Path, run: Run) -> None:
    text = (project / PLAN).read_text().replace("requests wait", "\u202erequests [bold]wait")
    (project / PLAN).write_text(text)

    ended = run("validate", PLAN)

    assert "\\u202erequests [bold]wait" in ended.out


def test_without_plan_it_is_a_usage_error(run: Run) -> None:
    ended = run("validate")

    assert ended.code == 2
    assert "Missing argument 'PLAN...'" in ended.err


GENERIC = (
    '{generic: {ready: "GET /healthz 200", answer: {protocol: openai_completions}, '
    "settings: {workers: {flag: --workers, type: int}}}}"
)


def generic(project: Path, change: str) -> None:
    service = project / "inventory/services/chat.yml"
    text = service.read_text()
    line = next(line for line in text.splitlines() if line.startswith("engine:"))
    service.write_text(text.replace(line, f"engine: {GENERIC}"))
    plan = (project / PLAN).read_text()
    old = next(line for line in plan.splitlines() if "change:" in line)
    (project / PLAN).write_text(plan.replace(old, f"  - change: {{parameter: {change}}}"))


def test_a_setting_that_a_declared_engine_has_not_is_told_with_the_file_to_declare_it_in(
    project: Path, run: Run
) -> None:
    generic(project, "{name: token-ms, to: 5}")
    ended = run("validate", PLAN)

    assert ended.code == 2
    assert "has no setting 'token-ms'" in ended.err
    assert "or declare it under `engine/generic/settings` in inventory/services/chat.yml" in ended.err


def test_a_value_that_is_not_of_the_declared_type_is_refused_where_it_stands(project: Path, run: Run) -> None:
    generic(project, "{name: workers, to: eight}")
    ended = run("validate", PLAN)

    assert ended.code == 2
    assert "steps/1/change/parameter/to: `eight` is no int, which workers is declared to be" in ended.err
    assert "write a whole number" in ended.err

    generic(project, "{name: workers, from: absent, to: 8}")
    assert "eight" not in run("validate", PLAN).err
