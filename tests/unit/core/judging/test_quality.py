"""What a trial says about answers: against what two starts of the saved configuration differ by alone."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.trial.trial_samples import (
    GOES_ON,
    KEPT_NEUTRAL,
    LEFT_TO_THE_PLAN,
    REGRESSED,
    codes,
    end,
    judge,
    row,
    steady,
)

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.judging.quality import sign_test
from changectl.core.judging.verdict import judge_quick
from changectl.core.measuring.answers import Answers, answers_of, expecting
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.metrics import Guard, parse_expectation, parse_guard
from changectl.core.measuring.records import Record
from changectl.core.trial.phases import TrialPhase

SAME = Answers({"same": 6})
OTHER = Answers({"other": 6})
Given = Mapping[str, Answers]


def prompts(count: int, answers: Answers = SAME) -> dict[str, Answers]:
    return {f"q{number}": answers for number in range(count)}


def changed(count: int, of: int = 20, answers: Answers = OTHER) -> dict[str, Answers]:
    """So many prompts, some of which are answered otherwise."""
    return {**prompts(of), **prompts(count, answers)}


def answering(pairs: int, a: Given, b: Given) -> list[TrialPhase]:
    """A trial whose speed is steady, with these answers."""
    return [with_answers(phase, a if phase.letter == "A" else b) for phase in steady(pairs)]


def with_answers(phase: TrialPhase, answers: Given) -> TrialPhase:
    return dataclasses.replace(phase, measurement=dataclasses.replace(phase.measurement, answers=answers))


def judged(pairs: int, a: Given, b: Given, *, needed: bool = True, accept: tuple[Guard, ...] = ()) -> Judgement:
    return judge(answering(pairs, a, b), changes_answers=needed, accept=accept)


def test_the_same_answers_are_kept() -> None:
    judgement = judged(2, prompts(94), prompts(94))

    assert end(judgement) == KEPT_NEUTRAL
    found = row(judgement, "disagreement")
    assert (found.state, found.before, found.after) == ("clear", 0.0, 0.0)
    assert "94 prompts" in found.note


@pytest.mark.parametrize(("count", "repeats"), [(12, 10), (93, 1000)])
@pytest.mark.parametrize("wrong", [None, 0])
def test_a_prompt_that_is_asked_again_excludes_no_more_than_it_did_before(
    count: int, repeats: int, wrong: int | None
) -> None:
    asked = prompts(count, Answers({"same": repeats}, wrong=wrong))
    judgement = judged(4, asked, asked)

    assert end(judgement) == LEFT_TO_THE_PLAN
    assert (
        "are not excluded by fewer than 94" in row(judgement, "disagreement" if wrong is None else "wrong_answers").note
    )
    assert judgement.more_pairs is None


def test_what_seems_to_be_harm_is_never_clear() -> None:
    """Two points more are wrong, which may be chance, and five more are excluded."""
    right, wrong = Answers({"a": 1}, wrong=0), Answers({"b": 1}, wrong=1)
    before = {**prompts(3000, right), **prompts(600, wrong)}
    after = {**prompts(3000, right), **{f"q{number}": wrong for number in range(600, 1265)}}
    judgement = judged(4, before, after)

    assert (row(judgement, "wrong_answers").high or 1) < 0.05
    assert end(judgement) == LEFT_TO_THE_PLAN


def test_other_answers_in_every_phase_are_harm_and_named_quality() -> None:
    judgement = judged(2, prompts(20), changed(14))

    assert end(judgement) == REGRESSED
    assert codes(judgement) == ["quality"]
    assert row(judgement, "disagreement").after == pytest.approx(0.7)


def test_one_pair_does_not_tell_by_how_much_two_starts_differ_anyway() -> None:
    judgement = judged(1, prompts(20), changed(20))
    assert end(judgement) == GOES_ON


def test_starts_that_differ_as_much_among_themselves_are_no_harm() -> None:
    phases = [with_answers(phase, changed(20, answers=Answers({f"start {phase.number}": 6}))) for phase in steady(2)]
    judgement = judge(phases, changes_answers=True)
    assert judgement.verdict is not Verdict.REGRESSED
    assert row(judgement, "disagreement").before == row(judgement, "disagreement").after == 1.0


def test_one_start_of_the_new_configuration_that_was_unlike_the_others_is_no_harm() -> None:
    phases = answering(3, prompts(20), prompts(20))
    phases[1] = with_answers(phases[1], changed(20))
    assert judge(phases, changes_answers=True).verdict is not Verdict.REGRESSED


def test_without_quality_prompts_a_parameter_that_may_change_answers_is_never_passed() -> None:
    judgement = judged(4, {}, {})

    assert end(judgement) == LEFT_TO_THE_PLAN
    assert '"quality": true' in judgement.reasons[0].text


def test_too_few_quality_prompts_are_no_evidence() -> None:
    judgement = judged(4, prompts(11), prompts(11))

    assert end(judgement) == LEFT_TO_THE_PLAN
    assert "11 quality prompts were answered in every phase; 12 are needed" in judgement.reasons[0].text


def test_of_other_parameters_nothing_is_asked() -> None:
    judgement = judged(2, {}, {}, needed=False)
    assert end(judgement) == KEPT_NEUTRAL
    assert all(one.metric != "disagreement" for one in judgement.rows)


def test_what_is_not_proven_of_other_parameters_is_shown_and_stops_nobody() -> None:
    judgement = judged(2, prompts(20), changed(2), needed=False)
    assert end(judgement) == KEPT_NEUTRAL
    assert row(judgement, "disagreement").state == "not judged"


def test_what_is_proven_of_other_parameters_counts() -> None:
    assert codes(judged(2, prompts(20), changed(14), needed=False)) == ["quality"]


def test_a_few_other_answers_leave_a_change_open_that_may_change_answers() -> None:
    judgement = judged(4, prompts(20), changed(2))
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert "disagreement" in judgement.reasons[0].text


def test_a_plan_may_accept_other_answers() -> None:
    accept = (parse_guard("disagreement", "<= 90%", "accept"),)
    assert end(judged(2, prompts(60), changed(42, 60), accept=accept)) == KEPT_NEUTRAL
    assert end(judged(2, prompts(60), changed(60, 60), accept=accept)) == REGRESSED


def test_right_and_wrong_count_where_an_answer_is_expected_and_its_words_do_not() -> None:
    right, wrong = Answers({"a": 6}, wrong=0), Answers({"b": 6}, wrong=6)
    others = Answers({"b": 6}, wrong=0)

    assert end(judged(2, prompts(94, right), prompts(94, others))) == KEPT_NEUTRAL
    judgement = judged(2, prompts(20, right), {**prompts(20, right), **prompts(12, wrong)})
    assert codes(judgement) == ["quality"]
    assert row(judgement, "wrong_answers").after == pytest.approx(0.6)


def test_as_many_wrong_as_before_is_no_harm() -> None:
    half = {**prompts(20, Answers({"a": 6}, wrong=0)), **prompts(10, Answers({"b": 6}, wrong=6))}
    assert judged(2, half, half).verdict is not Verdict.REGRESSED


def quick(a: Given, b: Given, *, needed: bool = True, accept: tuple[Guard, ...] = ()) -> Judgement:
    one, two = (phase.measurement for phase in answering(1, a, b))
    return judge_quick(one, two, changes_answers=needed, accept=accept)


def test_a_quick_look_cannot_tell_other_words_from_another_start() -> None:
    judgement = quick(prompts(20), prompts(20))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "one start" in judgement.reasons[0].text
    assert quick(prompts(20), changed(20), needed=False).verdict is Verdict.NO_GROSS_HARM


def test_a_quick_look_sees_gross_harm_among_expected_answers() -> None:
    right, wrong = Answers({"a": 6}, wrong=0), Answers({"b": 6}, wrong=6)
    assert quick(prompts(20, right), prompts(20, right)).verdict is Verdict.NO_GROSS_HARM
    judgement = quick(prompts(20, right), {**prompts(20, right), **prompts(12, wrong)})
    assert (judgement.verdict, codes(judgement)) == (Verdict.REGRESSED, ["quality"])


def test_a_quick_look_holds_what_a_plan_accepts() -> None:
    accept = (parse_guard("disagreement", "<= 50%", "accept"),)
    assert quick(prompts(20), changed(8), needed=False, accept=accept).verdict is Verdict.NO_GROSS_HARM
    assert quick(prompts(20), changed(12), needed=False, accept=accept).verdict is Verdict.REGRESSED


def test_answers_that_run_in_loops_are_harm_at_once() -> None:
    looping = Answers({"loop": 6}, looping=6)
    judgement = judged(1, prompts(10), prompts(10, looping), needed=False)
    assert end(judgement) == REGRESSED
    assert codes(judgement) == ["looping_answers"]


def test_answers_that_ran_in_loops_before_are_not_the_change_s_doing() -> None:
    looping = Answers({"loop": 6}, looping=6)
    half = {**prompts(20), **prompts(10, looping)}
    others = {**prompts(20), **{f"q{number}": looping for number in range(6, 18)}}
    for after in (half, others):
        assert "looping_answers" not in codes(judged(1, half, after, needed=False))


def test_no_gain_can_be_expected_of_answers() -> None:
    with pytest.raises(ValueError, match="no gain can be expected of disagreement"):
        parse_expectation("disagreement", "-10%")


def test_a_sign_test_leaves_out_what_did_not_move() -> None:
    assert sign_test([]) == 1.0
    assert sign_test([0.0] * 9) == 1.0
    assert sign_test([0.5] * 7 + [0.0] * 5) == pytest.approx(1 / 128)
    assert sign_test([1.0, -1.0]) == pytest.approx(0.75)


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.floats(0.0, 1.0), st.integers(12, 30), st.integers(2, 4))
def test_two_starts_of_the_same_are_never_called_harmful(
    chance: random.Random, flips: float, count: int, pairs: int
) -> None:
    """Each answer to a prompt is one of two, by a chance of its own: no start is unlike the others."""
    rates = [flips * chance.random() for _ in range(count)]

    def drawn() -> dict[str, Answers]:
        other = [sum(chance.random() < rate for _ in range(6)) for rate in rates]
        return {f"q{n}": Answers({"x": 6 - k, "y": k}) for n, k in enumerate(other)}

    phases = [with_answers(phase, drawn()) for phase in steady(pairs)]
    assert "quality" not in codes(judge(phases, changes_answers=True))


@settings(deadline=None)
@given(st.integers(12, 40), st.floats(0.3, 1.0), st.integers(2, 4))
def test_a_change_of_many_answers_is_always_found(count: int, share: float, pairs: int) -> None:
    judgement = judged(pairs, prompts(count), changed(max(12, round(share * count)), count))
    assert "quality" in codes(judgement)


def test_answers_are_read_from_the_records_of_quality_prompts() -> None:
    def record(prompt: str, text: str | None, cls: str = "ok") -> Record:
        return Record(i=0, level="n", stream=0, prompt=prompt, round=0, t_planned=0, cls=cls, text=text, text_sha=text)

    records = [record("q", "Paris"), record("q", "Rome"), record("w", "x", "unexpected"), record("w", "Paris"),
               record("p", None), record("q", "late", "late"), record("l", "no " * 60)]  # fmt: skip
    found = answers_of(records, expecting([{"id": "w", "expect": {"contains": "Paris"}}, {"id": "q"}]))

    assert found["q"] == Answers({"Paris": 1, "Rome": 1})
    assert (found["w"].n, found["w"].wrong) == (2, 1)
    assert found["l"].loops
    assert "p" not in found


@pytest.mark.parametrize("more", [{"prompt": "p"}, {"turns": ["one", "two"]}])
def test_what_is_expected_is_known_whatever_the_id(more: dict[str, object]) -> None:
    def record(prompt: str) -> Record:
        return Record(
            i=0, level="n", stream=0, prompt=prompt, round=0, t_planned=0, cls="unexpected", text="", text_sha=""
        )

    graded = {"id": "page#7", **more, "expect": {"contains": "Paris"}}
    plain = {"id": "page", "prompt": "p"}
    called = "page#7#2" if "turns" in more else "page#7"
    found = answers_of([record(called), record("page")], expecting([graded, plain]))

    assert (found[called].wrong, found["page"].wrong) == (1, None)


def test_answers_survive_the_record() -> None:
    measurement = Measurement((), answers={"q": Answers({"a": 2}, 1, 0)})
    assert Measurement.from_json(measurement.to_json()) == measurement
    assert Measurement.from_json({"format": 1, "levels": [], "facts": {}, "invalid": []}).answers == {}
