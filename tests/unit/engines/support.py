"""Recorded pages and logs of engines, one file per case."""

from __future__ import annotations

from pathlib import Path

from changectl.core.engine import Page

CASES = Path(__file__).parent / "cases"


def text(engine: str, name: str) -> str:
    return (CASES / engine / name).read_text()


def lines(engine: str, name: str) -> list[str]:
    return text(engine, name).splitlines()


def page(body: str, status: int = 200) -> Page:
    return Page(status=status, body=body)


def llamacpp_pages(**changed: Page) -> dict[str, Page]:
    names = {"health": "health.json", "models": "models.json", "props": "props.json", "slots": "slots.json"}
    pages = {name: page(text("llamacpp", file)) for name, file in names.items()}
    metrics = text("llamacpp", "metrics.txt")
    before = metrics.replace("tokens_predicted_total 16", "tokens_predicted_total 14")
    pages |= {"metrics_before": page(before), "answer": page(text("llamacpp", "answer.json")), "metrics": page(metrics)}
    return pages | changed


def vllm_pages(**changed: Page) -> dict[str, Page]:
    metrics = text("vllm", "metrics.txt")
    pages = {
        "health": page(""),
        "models": page(text("vllm", "models.json")),
        "version": page(text("vllm", "version.json")),
        "metrics_before": page(metrics.replace(" 1882.0", " 1880.0")),
        "answer": page(text("vllm", "answer.json")),
        "metrics": page(metrics),
    }
    return pages | changed
