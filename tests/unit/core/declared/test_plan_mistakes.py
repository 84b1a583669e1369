"""Every mistake has its own message, with file, line and column, the path, and what to write instead."""

from __future__ import annotations

import pytest
from tests.unit.core.declared.grammar_samples import PLAN, changed, only, plan_problems

CHANGE = "change: {parameter: {name: max-num-seqs, from: absent, to: 128}}"


def test_two_changes_in_one_step_are_both_named() -> None:
    two = "change: {parameter: {name: a, to: 1}, environment: {name: B, to: 2}}"

    assert only(plan_problems(changed(PLAN, CHANGE, two))) == (
        "plan.yml:9:13",
        "steps/1/change",
        "more than one change in this step: `parameter` and `environment`",
        "one step changes one thing: give each its own step",
    )


def test_a_list_of_changes_is_not_one_change() -> None:
    place, path, message, hint = only(
        plan_problems(changed(PLAN, CHANGE, "change: [{parameter: {}}, {parameter: {}}]"))
    )

    assert (place, path, message) == ("plan.yml:9:13", "steps/1/change", "2 changes in one step")
    assert "each its own step" in hint


def test_a_step_without_expectation_is_refused() -> None:
    assert only(plan_problems(changed(PLAN, "    expect: neutral\n    on_inconclusive: keep\n", ""))) == (
        "plan.yml:13:5",
        "steps/2/expect",
        "`expect` is missing",
        "write `expect: {rps_ok at peak: +10%}`, or `expect: neutral` when nothing is to improve",
    )


def test_an_unknown_metric_lists_the_known_ones() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "rps_ok at peak: +10%", "rps at peak: +10%")))

    assert (place, path) == ("plan.yml:10:14", "steps/1/expect/rps at peak")
    assert message == 'there is no metric "rps"'
    assert "rps_ok" in hint


def test_a_guard_on_an_unknown_metric_is_refused() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "tpot_p95: <= 45ms", "tpot_p96: <= 45ms")))

    assert (place, path) == ("plan.yml:11:14", "steps/1/accept/tpot_p96")
    assert message == '"tpot" has no statistic "p96"'
    assert hint == "known: p50, p95, p99, mean"


def test_an_unknown_level_lists_the_levels_in_force() -> None:
    assert only(plan_problems(changed(PLAN, "rps_ok at peak", "rps_ok at low"))) == (
        "plan.yml:10:14",
        "steps/1/expect/rps_ok at low",
        'there is no level "low"',
        "known: normal, peak",
    )


def test_without_its_own_levels_a_plan_has_the_services() -> None:
    text = changed(PLAN, "levels: {normal: 8 streams, peak: 16 streams}, ", "")

    assert only(plan_problems(text))[2:] == ('there is no level "peak"', "known: low, normal")


def test_a_limit_without_unit_is_refused() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "<= 45ms", "<= 800")))

    assert (place, path) == ("plan.yml:11:24", "steps/1/accept/tpot_p95")
    assert message == '"<= 800" has no unit'
    assert "<= 800ms" in hint


def test_a_time_without_unit_is_refused() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "outage: 30m", "outage: 800")))

    assert (place, path, message) == ("plan.yml:6:9", "outage", '"800" is not a duration')
    assert "800ms or 45m" in hint


def test_an_unknown_kind_names_the_nearest() -> None:
    assert only(plan_problems(changed(PLAN, "{parameter:", "{paramter:"))) == (
        "plan.yml:9:14",
        "steps/1/change/paramter",
        "unknown kind of change `paramter`",
        "did you mean `parameter`? known: environment, parameter",
    )


def test_a_change_that_changes_nothing_is_refused() -> None:
    assert only(plan_problems(changed(PLAN, 'from: "1"', 'from: "2"'))) == (
        "plan.yml:14:59",
        "steps/2/change/environment/to",
        "`from` and `to` are the same (2): nothing would change",
        "write the new value under `to`",
    )


def test_taking_out_what_is_asserted_to_be_absent_is_refused() -> None:
    message = only(plan_problems(changed(PLAN, "to: 128", "to: absent")))[2]

    assert message == "`from` and `to` are the same (absent): nothing would change"


def test_a_change_without_new_value_is_refused() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, ", to: 128", "")))

    assert (place, path, message) == ("plan.yml:9:14", "steps/1/change/parameter/to", "`to` is missing")
    assert hint == "write `to: 128` (what it shall be; `absent` takes it out)"


def test_a_flag_with_dashes_is_shown_without_them() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "name: max-num-seqs", "name: --max-num-seqs")))

    assert (place, path) == ("plan.yml:9:32", "steps/1/change/parameter/name")
    assert message == "`--max-num-seqs` is written as a flag"
    assert hint == "write the name without dashes: `max-num-seqs`"


def test_an_assignment_is_not_the_name_of_a_variable() -> None:
    place, path, message, _ = only(plan_problems(changed(PLAN, "name: OMP_NUM_THREADS", "name: OMP_NUM_THREADS=2")))

    assert (place, path) == ("plan.yml:14:27", "steps/2/change/environment/name")
    assert message == "`OMP_NUM_THREADS=2` cannot be the name of an environment variable"


def test_an_unknown_key_points_at_the_key_and_names_the_nearest() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "ticket: OPS", "tickt: OPS")))

    assert (place, path, message) == ("plan.yml:4:1", "tickt", "unknown key `tickt`")
    assert hint.startswith("did you mean `ticket`? known: ")


def test_a_missing_reason_says_what_it_is_for() -> None:
    place, path, message, hint = only(
        plan_problems(changed(PLAN, "reason: OPS-1234 GPU idle while 12 requests wait\n", ""))
    )

    assert (place, path, message) == ("plan.yml:1:1", "reason", "`reason` is missing")
    assert "for whoever reads the history" in hint


@pytest.mark.parametrize(
    ("effort", "place", "path", "message", "hint"),
    [
        ("{observe: 0s}", "plan.yml:5:19", "effort/observe", '"0s" is not a duration', "write a duration like 45m"),
        ("slow", "plan.yml:5:9", "effort", "unknown effort `slow`", "write `effort: quick`"),
        ("standrd", "plan.yml:5:9", "effort", "unknown effort `standrd`", "did you mean `standard`?"),
        ("time", "plan.yml:5:9", "effort", "a time belongs to it", "write `effort: {time: 45m}`"),
        ("{}", "plan.yml:5:9", "effort", "an effort with settings has a time alone, not nothing", "{time: 45m}"),
        ("{pairs: 3}", "plan.yml:5:9", "effort", "has a time alone, not `pairs`", "write `effort: {time: 45m}`"),
        ("{time: 45}", "plan.yml:5:16", "effort/time", '"45" is not a duration', "write a duration like 45m"),
        ("[quick]", "plan.yml:5:9", "effort", "one text belongs here", "write one value"),
    ],
)
def test_what_is_no_effort_is_refused_with_what_to_write(
    effort: str, place: str, path: str, message: str, hint: str
) -> None:
    found = only(plan_problems(changed(PLAN, "effort: quick", f"effort: {effort}")))

    assert found[:2] == (place, path)
    assert message in found[2]
    assert hint in found[3]


def test_a_caller_in_a_plan_is_sent_to_the_service_file() -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "outage: 30m", "caller: gateway-1")))

    assert (place, path, message) == ("plan.yml:6:9", "caller", "`caller` is not supported in a plan")
    assert "`caller` belongs into the service file" in hint


@pytest.mark.parametrize("length", ["1s", "2400h"])
def test_a_watch_has_a_length_that_shows_something_and_ends(length: str) -> None:
    place, path, message, hint = only(plan_problems(changed(PLAN, "    on_inconclusive: keep", f"    watch: {length}")))

    assert (place, path) == ("plan.yml:16:12", "steps/2/watch")
    assert message.startswith("a watch of ")
    assert hint == "write between 10s and 24h, like `watch: 30m`"


@pytest.mark.parametrize(
    ("level", "message", "hint"),
    [
        ("6 rpm", '"6 rpm" is not a load level', 'write a number of streams, like "8 streams", or a rate, "6 rps"'),
        ("0 rps", '"0 rps" is no load at all', 'write at least "1 stream", or a rate above zero'),
        (
            "20000 rps",
            '"20000 rps" is more than one load generator can send',
            'write at most "10000 streams", or "10000 rps"',
        ),
    ],
)
def test_a_rate_that_is_none_is_told_with_what_to_write(level: str, message: str, hint: str) -> None:
    assert only(plan_problems(changed(PLAN, "peak: 16 streams", f"peak: {level}"))) == (
        "plan.yml:7:48",
        "conditions/levels/peak",
        message,
        hint,
    )


def test_keeping_without_evidence_needs_a_neutral_expectation() -> None:
    text = changed(PLAN, "    checks: [checks/answers.py]", "    on_inconclusive: keep")

    place, path, message, hint = only(plan_problems(text))

    assert (place, path) == ("plan.yml:12:22", "steps/1/on_inconclusive")
    assert message == "`keep` would keep a gain that nobody saw"
    assert hint == "write `revert` or `ask`, or `expect: neutral`"


def test_an_expected_loss_is_refused() -> None:
    place, path, message, _ = only(plan_problems(changed(PLAN, "+10%", "-10%")))

    assert (place, path) == ("plan.yml:10:30", "steps/1/expect/rps_ok at peak")
    assert message == '"-10%" would make rps_ok worse (higher is better)'


def test_a_metric_that_the_service_cannot_give_is_refused() -> None:
    lacking = {"kv_capacity": "an engine declared as generic does not say it; name another metric instead"}
    text = changed(PLAN, "rps_ok at peak: +10%", "kv_capacity: +10%")

    place, path, message, hint = only(plan_problems(text, lacking=lacking))

    assert (place, path) == ("plan.yml:10:14", "steps/1/expect/kv_capacity")
    assert message == '"kv_capacity" does not exist for this service: an engine declared as generic does not say it'
    assert hint == "name another metric instead"


def test_a_check_has_to_be_a_python_file() -> None:
    place, path, _, hint = only(plan_problems(changed(PLAN, "checks/answers.py", "checks/answers.yml")))

    assert (place, path) == ("plan.yml:12:14", "steps/1/checks/1")
    assert "checks/answers.py" in hint


def test_a_plan_without_steps_is_refused() -> None:
    text = PLAN[: PLAN.index("steps:")] + "steps: []\n"

    assert only(plan_problems(text))[:3] == ("plan.yml:8:8", "steps", "a plan without steps changes nothing")


def test_a_list_in_place_of_a_value_is_refused() -> None:
    place, path, message, _ = only(plan_problems(changed(PLAN, "to: 128", "to: [128]")))

    assert (place, path) == ("plan.yml:9:64", "steps/1/change/parameter/to")
    assert message == "one text belongs here"


def test_a_value_with_a_line_break_is_refused() -> None:
    message = only(plan_problems(changed(PLAN, 'to: "2"', r'to: "2\nEVIL=1"')))[2]

    assert message == "a value cannot hold a line break or control character"


def test_a_forgotten_value_is_not_an_empty_one() -> None:
    change = "change:\n      parameter:\n        name: max-num-seqs\n        to:"

    place, path, message, hint = only(plan_problems(changed(PLAN, CHANGE, change)))

    assert (place, path, message) == ("plan.yml:12:9", "steps/1/change/parameter/to", "nothing is written here")
    assert "`absent`" in hint


def test_another_version_of_the_grammar_is_refused() -> None:
    assert only(plan_problems(changed(PLAN, "version: 1", "version: 2"))) == (
        "plan.yml:1:10",
        "version",
        "version 2 is not known to this changectl",
        "write `version: 1`",
    )


def test_the_level_of_the_warm_up_cannot_be_judged() -> None:
    place, path, message, _ = only(plan_problems(changed(PLAN, "normal: 8 streams", "warmup: 8 streams")))

    assert (place, path) == ("plan.yml:7:23", "conditions/levels/warmup")
    assert message == "`warmup` names the requests that nobody judges"


def test_all_mistakes_are_reported_together_in_the_order_of_the_file() -> None:
    text = changed(changed(changed(PLAN, "outage: 30m", "outage: 30"), "ticket: OPS", "tickt: OPS"), "+10%", "10%")

    found = [(problem.line, problem.path) for problem in plan_problems(changed(text, "to: 128", "two: 128"))]

    assert found == [
        (4, "tickt"),
        (6, "outage"),
        (9, "steps/1/change/parameter/to"),
        (9, "steps/1/change/parameter/two"),
        (10, "steps/1/expect/rps_ok at peak"),
    ]
