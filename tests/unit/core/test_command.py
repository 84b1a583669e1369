from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from changectl.core.command import Argument, different_arguments
from changectl.core.judging.conditions import Fingerprint, differences

LONG = "/root/.pyenv/versions/3.11.7/bin/python3"
WORDS = st.lists(st.text(max_size=3), max_size=6)


def told(before: list[str], after: list[str], *programs: object) -> list[str]:
    """What differs between two commands whose programs are these (one: the same of both)."""
    facts = zip((before, after), (programs[0], programs[-1]), strict=True)
    return [str(one) for one in differences(*(Fingerprint({"command": c, "program": p}) for c, p in facts))]


def test_a_program_that_a_shim_calls_with_its_folder_is_the_same_program() -> None:
    assert told([LONG, "server.py"], ["python3", "server.py"], ["/usr/bin/python3", 1, 2, 3, ""]) == []


def test_without_proof_that_it_is_the_same_file_the_first_word_is_named() -> None:
    named = f'argument 0: "{LONG}" -> "python3"'
    assert told([LONG, "server.py"], ["python3", "server.py"], None) == [named]
    assert named in told([LONG, "server.py"], ["python3", "server.py"], [1, 2, 3], [1, 2, 4])


def test_another_name_of_the_same_file_may_be_another_program() -> None:
    assert told(["/bin/sh", "-c"], ["/bin/cat", "-c"], ["/bin/busybox", 1, 2, 3, ""]) == [
        'argument 0: "/bin/sh" -> "/bin/cat"'
    ]


def test_a_word_that_was_put_in_or_taken_out_is_named_alone() -> None:
    assert told(["x", "--a", "1"], ["x", "--new", "--a", "1"], None) == ['argument 1: absent -> "--new"']
    assert told(["x", "--new", "--a", "1"], ["x", "--a", "1"], None) == ['argument 1: "--new" -> absent']
    assert told(["x", "--a", "1"], ["x", "--a", "2"], [1]) == ['argument 2: "1" -> "2"']


def test_the_same_program_excuses_no_other_word() -> None:
    assert told([LONG, "a.py"], ["python3", "b.py"], [1]) == ['argument 1: "a.py" -> "b.py"']
    assert told([LONG], [], [1]) != []


@given(WORDS, WORDS, st.booleans())
def test_what_is_not_named_is_equal(before: list[str], after: list[str], same_program: bool) -> None:
    found = different_arguments(before, after, same_program=same_program)
    gone, new = {one.before for one in found}, {one.after for one in found}
    left = [word for place, word in enumerate(before) if place not in gone]
    right = [word for place, word in enumerate(after) if place not in new]
    if same_program and left and right and 0 not in gone and 0 not in new:
        left, right = left[1:], right[1:]
    assert left == right
    assert Argument(None, None) not in found
