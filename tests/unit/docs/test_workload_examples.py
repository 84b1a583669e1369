"""What pages show as lines of a workload is a workload, and what they show as a source gives one."""

from __future__ import annotations

import pytest
from tests.unit.docs.docs_pages import PAGES, Block

from changectl import loads
from changectl.core.workload import requests as workload
from changectl.core.workload.source import Candidate, candidates

WORKLOADS = ("docs/reference/workload.md", "docs/how-to/write-a-workload.md", "docs/reference/loads/")
EXAMPLES = [
    block for page in PAGES for block in page.blocks if block.language == "json" and page.name.startswith(WORKLOADS)
]
SOURCES = [block for block in EXAMPLES if "request_body" in block.text]


def protocol_of(block: Block) -> str:
    name = block.page.rpartition("/")[2].removesuffix(".md")
    return name if name in loads.names() else "openai_chat"


@pytest.mark.parametrize("block", [block for block in EXAMPLES if block not in SOURCES], ids=str)
def test_a_line_on_a_page_can_be_sent(block: Block) -> None:
    assert workload.load(block.text.encode(), str(block), protocol_of(block)).entries


@pytest.mark.parametrize("block", SOURCES, ids=str)
def test_every_line_of_a_source_on_a_page_gives_a_request(block: Block) -> None:
    found = list(candidates(block.text, "chat"))

    assert len(found) == len(block.text.splitlines())
    assert all(isinstance(one, Candidate) for one in found)


def test_every_protocol_shows_a_line() -> None:
    assert {protocol_of(block) for block in EXAMPLES} == set(loads.names())
