from __future__ import annotations

import pytest
from tests.unit.cli.cli_runner import Run


@pytest.mark.parametrize("what", ["plan", "service"])
def test_the_schema_is_one_json_document(run: Run, what: str) -> None:
    ended = run("schema", what)

    assert ended.code == 0
    assert ended.json["title"] == f"changectl {what}"
    assert ended.json["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "description" in ended.json["properties"]["service"]


def test_another_word_is_a_usage_error(run: Run) -> None:
    ended = run("schema", "host")

    assert ended.code == 2
    assert "'host' is not one of" in ended.err
