from __future__ import annotations

import pytest

from changectl.core.declared.source import Place, read_yaml
from changectl.core.errors import InputError, Problem


def refusal(content: bytes | str) -> Problem:
    with pytest.raises(InputError) as caught:
        read_yaml(content, "f.yml")
    (problem,) = caught.value.problems
    return problem


def test_every_scalar_is_the_text_of_the_file() -> None:
    source = read_yaml("a: 8\nb: '8'\nc: on\nd: 1e3\ne: 0x10\nf: 010\ng: |\n  two\n  lines\n", "f.yml")

    assert source.data == {
        "a": "8", "b": "8", "c": "on", "d": "1e3", "e": "0x10", "f": "010", "g": "two\nlines\n",
    }  # fmt: skip
    assert source.problems == ()


def test_every_node_has_its_place_counted_from_one() -> None:
    source = read_yaml("a:\n  - {b: 1}\n  - c\n", "f.yml")

    assert source.values[("a", 0, "b")] == Place(2, 9)
    assert source.keys[("a", 0, "b")] == Place(2, 6)
    assert source.values[("a", 1)] == Place(3, 5)


def test_a_repeated_key_names_the_line_of_the_first() -> None:
    (problem,) = read_yaml("a: 1\nb: 2\na: 3\n", "f.yml").problems

    assert str(problem) == "f.yml:3:1: a: `a` stands here a second time\n  the first is in line 1"


def test_a_tab_in_the_indentation_is_named() -> None:
    problem = refusal("a:\n\t- b\n")

    assert (problem.line, problem.column, problem.message) == (2, 1, "a tab stands in the indentation")
    assert problem.hint == "indent with spaces; YAML forbids tabs"


def test_a_second_document_is_refused_where_it_begins() -> None:
    problem = refusal("a: 1\n---\nb: 2\n")

    assert (problem.line, problem.message) == (2, "a second document begins here")


@pytest.mark.parametrize("text", ["~", "null", "Null", ""])
def test_nothing_is_not_a_value(text: str) -> None:
    (problem,) = read_yaml(f"a: {text}\n", "f.yml").problems

    assert problem.path == "a"
    assert "leave the key out" in problem.hint


def test_the_word_null_in_quotes_is_a_text() -> None:
    assert read_yaml('a: "null"\n', "f.yml").data == {"a": "null"}


def test_a_template_without_quotes_is_explained() -> None:
    problems = read_yaml("a: {{ host }}\n", "f.yml").problems

    assert any(problem.hint == 'quote templates: `"{{ name }}"`' for problem in problems)


def test_tags_are_refused_with_the_way_for_secrets() -> None:
    (problem,) = read_yaml("a: !vault |\n  123\n", "f.yml").problems

    assert (problem.path, problem.message) == ("a", "tags such as !vault are not used here")
    assert "vault variables" in problem.hint


def test_an_alias_that_contains_itself_is_refused() -> None:
    problems = read_yaml("a: &x [*x]\n", "f.yml").problems

    assert [problem.message for problem in problems] == ["an alias that contains itself"]


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]

    assert "aliases make this file larger" in refusal("\n".join(lines)).message


def test_merge_keys_are_refused() -> None:
    (problem,) = read_yaml("a: &x {b: 1}\nc:\n  <<: *x\n", "f.yml").problems

    assert (problem.line, problem.message) == (3, "merge keys (`<<`) are not used here")


def test_an_empty_file_says_where_to_begin() -> None:
    assert refusal("# nothing\n").message == "the file is empty"


def test_a_file_that_is_not_utf_8_names_the_place() -> None:
    problem = refusal(b"a: 1\nb: \xff\n")

    assert (problem.line, problem.column, problem.message) == (2, 4, "not UTF-8 text")


def test_a_control_character_names_the_place() -> None:
    problem = refusal("a: 1\nb: \x00\n")

    assert (problem.line, problem.column) == (2, 4)


def test_an_open_bracket_is_a_problem_with_a_place() -> None:
    problem = refusal("a: [1, 2\n")

    assert problem.line >= 1
    assert problem.message.startswith("not readable as YAML")


def test_deep_nesting_is_refused() -> None:
    assert refusal("[" * 1500).message == "nested too deeply"


def test_a_huge_file_is_refused() -> None:
    assert "larger than" in refusal("a" * 2_000_000).message


@pytest.mark.parametrize(
    "line", ["accept: {tpot_p95: >= 20ms}", "tpot_p95: >= 20ms", "- a: >= 20ms  # not less", "x: > 20ms"]
)
def test_a_limit_without_its_quotes_is_told_to_be_quoted(line: str) -> None:
    problem = refusal(f"a: 1\nb:\n  {line}\n")

    assert (problem.line, problem.message) == (3, "a value that begins with `>` needs quotes")
    assert problem.column == 3 + line.index(">")
    assert problem.hint in ('write ">= 20ms" in quotes', 'write "> 20ms" in quotes')


STEP = "steps:\n  - change: {parameter: {name: a, to: 1}}\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            f"{STEP}   expect: neutral\n",
            3,
            "line 3 is indented by 3 spaces; what stands above it (line 2) begins in column 5",
        ),
        (
            f"{STEP}     expect: neutral\n",
            3,
            "line 3 is indented by 5 spaces; what stands above it (line 2) begins in column 5",
        ),
        (
            f"{STEP}\n  # why\n   expect: neutral\n",
            5,
            "line 5 is indented by 3 spaces; what stands above it (line 2) begins",
        ),
        (f"{STEP} - change: 2\n", 3, "line 3 is indented by 1 space; the `-` above it (line 2) begins in column 3"),
        (
            "version: 1\n service: x\n",
            2,
            "line 2 is indented by 1 space; what stands above it (line 1) begins in column 1",
        ),
    ],
)
def test_a_wrong_indentation_is_told_in_spaces_and_columns(text: str, line: int, said: str) -> None:
    problem = refusal(text)

    assert problem.line == line
    assert problem.message.startswith(said)
    assert "same column" in problem.hint


def test_a_second_change_is_sent_into_its_own_step() -> None:
    source = read_yaml("steps:\n  - change: {a: 1}\n    change: {b: 2}\n", "plan.yml")

    assert [(one.line, one.message) for one in source.problems] == [(3, "`change` stands here a second time")]
    assert "give the second one its own step" in source.problems[0].hint


@pytest.mark.parametrize("text", ['a: 1\nb: "\\ud800"\n', 'a: 1\n"\\udfff": x\n', 'a: 1\nb: ["x", "a\\ud800z"]\n'])
def test_half_a_character_is_a_problem_with_a_place_that_can_be_printed(text: str) -> None:
    (problem,) = read_yaml(text, "plan.yml").problems

    assert problem.line == 2
    assert problem.message.startswith("half a character")
    assert str(problem).encode()
