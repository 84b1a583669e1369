from __future__ import annotations

from typing import Any

import pytest

from changectl.core.declared import project
from changectl.core.declared.lacking import lacking_metrics
from changectl.core.digest import plan_digest
from changectl.core.errors import InputError, Problem


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        project.load(text, "changectl.toml")
    return caught.value.problems


def test_every_key_is_read() -> None:
    read = project.load(
        'database = "a.db"\ninventory = "hosts.ini"\nservices = "s"\nkey_file = "k"\nstate_dir = "/srv/x"\n',
        "changectl.toml",
    )

    assert (read.database, read.inventory, read.services, read.key_file) == ("a.db", "hosts.ini", "s", "k")
    assert read.state_dir == "/srv/x"


def test_an_empty_file_has_the_defaults() -> None:
    read = project.load("", "changectl.toml")

    assert (read.database, read.inventory, read.services) == (".changectl/changectl.db", "inventory", None)


def test_an_unknown_key_has_its_line_and_the_nearest_name() -> None:
    (problem,) = problems('database = "a"\n\ninventroy = "b"\n')

    assert str(problem).startswith(
        "changectl.toml:3:1: inventroy: unknown key `inventroy`\n  did you mean `inventory`? known: database"
    )


def test_an_unknown_table_has_its_line() -> None:
    (problem,) = problems('database = "a"\n[prices]\nhost = 1\n')

    assert (problem.line, problem.column, problem.path) == (2, 2, "prices")


def test_a_value_has_its_place() -> None:
    (problem,) = problems("state_dir = 300\n")

    assert (problem.line, problem.column, problem.path) == (1, 13, "state_dir")
    assert problem.message == "`300` is not an absolute path on the host"


def test_a_lease_is_read_in_seconds() -> None:
    assert project.load('lease = "5m"\n', "changectl.toml").lease == 300.0


@pytest.mark.parametrize("value", ["1s", "2d", "500ms"])
def test_a_lease_that_a_hiccup_would_end_or_that_never_ends_is_refused(value: str) -> None:
    (problem,) = problems(f'lease = "{value}"\n')

    assert (problem.line, problem.column, problem.path) == (1, 9, "lease")


def test_a_list_is_not_a_path() -> None:
    (problem,) = problems('inventory = ["a", "b"]\n')

    assert (problem.path, problem.message) == ("inventory", "one text belongs here")


def test_what_is_not_toml_has_its_place() -> None:
    (problem,) = problems('database = "a"\ninventory: b\n')

    assert (problem.line, problem.column) == (2, 10)
    assert problem.message.startswith("not readable as TOML")


FACTS: dict[str, Any] = {
    "plan": "p",
    "service": "s",
    "files": {"w": "1", "c": "2"},
    "hosts": ["a", "b"],
    "tool_version": "1",
}


def test_the_digest_does_not_depend_on_the_order_of_hosts() -> None:
    assert plan_digest(**FACTS) == plan_digest(**{**FACTS, "hosts": ["b", "a", "a"]})


@pytest.mark.parametrize(
    "other",
    [{"plan": "x"}, {"service": "x"}, {"files": {"w": "1"}}, {"files": {"w": "1", "c": "3"}},
     {"hosts": ["a"]}, {"tool_version": "2"}],
)  # fmt: skip
def test_the_digest_depends_on_everything_else(other: dict[str, object]) -> None:
    assert plan_digest(**FACTS) != plan_digest(**{**FACTS, **other})


def test_a_metric_is_lacking_only_where_no_protocol_gives_it() -> None:
    assert set(lacking_metrics("vllm", ("openai_completions", "openai_chat"))) == set()
    assert set(lacking_metrics("generic", ("openai_completions",))) == {"ttfo", "kv_capacity"}
    assert set(lacking_metrics("generic", ())) == {"kv_capacity"}


def test_whoever_limits_the_first_token_of_whole_answers_is_told_what_to_limit_instead() -> None:
    lacking = lacking_metrics("generic", ("openai_embeddings",))

    assert lacking["ttft_user"] == "its answers come whole and not token by token; name `e2e_user` instead"
    assert lacking["out_tok_s"].endswith("name `rps_ok` instead")
    assert not {"e2e_user", "rps_ok", "failures", "goodput"} & set(lacking)
