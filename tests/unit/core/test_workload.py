from __future__ import annotations

import pytest

from changectl.core import workload
from changectl.core.errors import InputError

GOOD = '{"id": "a", "prompt": "x", "max_tokens": 3}'
ONE_TEXT = "exactly one of `prompt` and `messages` belongs here"
ROLES = "`messages` has to be a list of roles and texts"
ABOVE_ZERO = "`max_tokens` has to be a whole number above zero"


def problem_of(line: str) -> tuple[int, str, str]:
    with pytest.raises(InputError) as caught:
        workload.load(f"{GOOD}\n{line}\n".encode(), "w.jsonl")
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
        ("[1]", "", "a JSON object belongs here"),
        ("{'id': 1}", "", "not readable as JSON: Expecting property name enclosed in double quotes"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(line: str, path: str, message: str) -> None:
    assert problem_of(line) == (2, path, message)


def test_an_empty_workload_is_refused() -> None:
    with pytest.raises(InputError, match="no requests"):
        workload.load(b"\n\n", "w.jsonl")
