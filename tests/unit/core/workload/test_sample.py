from __future__ import annotations

import json
from importlib.resources import files

import pytest

from changectl.core.workload import requests as workload
from changectl.core.workload.lengths import lengths
from changectl.core.workload.sample import KINDS, MOST, REQUESTS, sample

PROTOCOLS = {
    "chat": "openai_chat",
    "completions": "openai_completions",
    "embeddings": "openai_embeddings",
    "kserve": "kserve_v2",
}


def text(kind: str, requests: int = REQUESTS) -> bytes:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in sample(kind, requests)).encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("requests", [1, REQUESTS, MOST])
def test_a_sample_is_a_workload_of_its_protocol(kind: str, requests: int) -> None:
    read = workload.load(text(kind, requests), "sample", PROTOCOLS[kind])

    assert len(read.entries) == requests


@pytest.mark.parametrize("kind", ["chat", "embeddings"])
def test_no_two_requests_of_a_sample_are_alike(kind: str) -> None:
    contents = [json.dumps([entry.get("prompt"), entry.get("turns")]) for entry in sample(kind, MOST)]

    assert len(set(contents)) == MOST


def test_a_sample_of_text_holds_short_and_long_inputs_and_conversations() -> None:
    entries = sample("chat")
    tokens = [one.tokens for one in lengths(entries)]

    assert sum(size < 60 for size in tokens) >= REQUESTS // 4
    assert sum(size > 600 for size in tokens) >= REQUESTS // 8
    assert sum(len(entry.get("turns", ())) == 3 for entry in entries) >= REQUESTS // 8


def test_a_larger_sample_begins_with_the_smaller_one() -> None:
    assert sample("chat", 40)[:8] == sample("chat", 8)


def test_init_begins_with_the_sample() -> None:
    written = files("changectl") / "scaffold" / "inventory" / "workloads" / "chat.jsonl"

    assert written.read_bytes() == text("chat")
