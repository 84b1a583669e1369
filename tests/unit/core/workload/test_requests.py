from __future__ import annotations

import pytest

from changectl.core.errors import InputError
from changectl.core.workload import requests as workload

GOOD = '{"id": "a", "prompt": "x", "max_tokens": 3}'
ONE_TEXT = "exactly one of `prompt`, `messages`, `turns` and `inputs` belongs here"
ROLES = "`messages` has to be a list of roles and texts"
TURNS = "`turns` has to be a list of two texts or more, each of the user"
EXPECT = "`expect` is `empty`, or says what the answer contains"
ABOVE_ZERO = "`max_tokens` has to be a whole number above zero"


def problem_of(line: str, protocol: str | None = None, first: str = GOOD) -> tuple[int, str, str]:
    with pytest.raises(InputError) as caught:
        workload.load(f"{first}\n{line}\n".encode(), "w.jsonl", protocol)
    (problem,) = caught.value.problems
    return problem.line, problem.path, problem.message


def test_a_workload_is_read_in_its_order() -> None:
    chat = (
        '{"id": "b", "messages": [{"role": "user", "content": "x"}], "max_tokens": 3, '
        '"expect": "empty", "quality": true}'
    )

    read = workload.load(f"{GOOD}\n\n{chat}\n".encode(), "w.jsonl")

    assert [entry["id"] for entry in read.entries] == ["a", "b"]
    assert len(read.digest) == 64


@pytest.mark.parametrize(
    ("line", "path", "message"),
    [
        (GOOD, "id", "the id `a` stands here a second time"),
        ('{"prompt": "x", "max_tokens": 3}', "id", "`id` has to be a text"),
        ('{"id": "b", "max_tokens": 3}', "prompt", ONE_TEXT),
        ('{"id": "b", "prompt": "x", "messages": [], "max_tokens": 3}', "prompt", ONE_TEXT),
        ('{"id": "b", "messages": [{"role": "user"}], "max_tokens": 3}', "messages", ROLES),
        ('{"id": "b", "prompt": "x"}', "max_tokens", ABOVE_ZERO),
        ('{"id": "b", "prompt": "x", "max_tokens": true}', "max_tokens", ABOVE_ZERO),
        ('{"id": "b", "prompt": "x", "max_tokens": 3, "temprature": 1}', "temprature", "unknown key `temprature`"),
        ('{"id": "b", "id": "c", "prompt": "x", "max_tokens": 3}', "", "`id` stands twice in this line"),
        ('{"id": "b", "turns": ["x"], "max_tokens": 3}', "turns", TURNS),
        ('{"id": "b", "turns": ["x", ""], "max_tokens": 3}', "turns", TURNS),
        ('{"id": "b", "prompt": "x", "system": "y", "max_tokens": 3}', "system", "`system` only stands beside `turns`"),
        ('{"id": "b", "prompt": "x", "max_tokens": 3, "expect": "full"}', "expect", EXPECT),
        ('{"id": "b", "prompt": "x", "max_tokens": 3, "expect": {"contains": " "}}', "expect", EXPECT),
        ('{"id": "b", "prompt": "x", "max_tokens": 3, "expect": {"contain": "y"}}', "expect", EXPECT),
        ('{"id": "b", "inputs": []}', "inputs", "`inputs` has to be a list of tensors"),
        ("[1]", "", "a JSON object belongs here"),
        ("{'id': 1}", "", "not readable as JSON: Expecting property name enclosed in double quotes"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(line: str, path: str, message: str) -> None:
    assert problem_of(line) == (2, path, message)


def test_an_empty_workload_is_refused() -> None:
    with pytest.raises(InputError, match="no requests"):
        workload.load(b"\n\n", "w.jsonl")


ROW = '{"id": "a", "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}]}'
TEXT = '{"id": "a", "prompt": "x"}'


def test_a_conversation_an_expected_answer_and_tensors_are_read() -> None:
    talk = '{"id": "b", "system": "Be brief.", "turns": ["x", "y"], "max_tokens": 3, "expect": {"contains": "z"}}'

    read = workload.load(f"{ROW}\n{talk}\n".encode(), "w.jsonl")

    assert [entry["id"] for entry in read.entries] == ["a", "b"]


def test_a_request_may_not_have_the_name_of_another_ones_turn() -> None:
    first = '{"id": "a", "turns": ["x", "y"], "max_tokens": 3}'

    line, path, message = problem_of('{"id": "a#2", "prompt": "x", "max_tokens": 3}', first=first)

    assert (line, path, message) == (2, "id", "the id `a#2` stands here a second time")


@pytest.mark.parametrize(
    ("protocol", "first", "line", "path", "message"),
    [
        ("openai_embeddings", TEXT, '{"id": "b", "messages": []}', "messages",
         "`messages` has no meaning for `openai_embeddings`"),
        ("openai_embeddings", TEXT, '{"id": "b", "prompt": "x", "max_tokens": 3}', "max_tokens",
         "`max_tokens` has no meaning for `openai_embeddings`"),
        ("kserve_v2", ROW, '{"id": "b", "prompt": "x"}', "prompt", "`prompt` has no meaning for `kserve_v2`"),
        ("openai_chat", GOOD, ROW.replace('"a"', '"b"'), "inputs", "`inputs` has no meaning for `openai_chat`"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_the_services_protocol_is_refused(
    protocol: str, first: str, line: str, path: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        workload.load(f"{first}\n{line}\n".encode(), "w.jsonl", protocol)

    assert (2, path, message) in [(one.line, one.path, one.message) for one in caught.value.problems]


@pytest.mark.parametrize(("protocol", "line"), [("openai_embeddings", TEXT), ("kserve_v2", ROW), ("openai_chat", GOOD)])
def test_each_protocol_takes_its_own_lines(protocol: str, line: str) -> None:
    assert len(workload.load(line.encode(), "w.jsonl", protocol).entries) == 1
