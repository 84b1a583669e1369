"""The page about engine and host during a phase names every figure that the program knows, as the program has it."""

from __future__ import annotations

from tests.unit.docs.docs_pages import ROOT

from changectl import engines
from changectl.core.telemetry.engine_series import CANONICAL
from changectl.core.telemetry.host_figures import COUNTS, FIGURES

PAGE = (ROOT / "docs" / "reference" / "activity.md").read_text()
ROWS = {line.split("`")[1]: line for line in PAGE.splitlines() if line.startswith("| `")}


def test_every_canonical_name_has_its_row_with_the_series_of_each_engine() -> None:
    for row in CANONICAL:
        line = ROWS[row.name]
        assert row.meaning in line
        for name in ("vllm", "llamacpp"):
            for series in engines.load(name).metric_table.series.get(row.name, ()):
                assert f"`{series.name}`" in line


def test_every_figure_of_a_host_has_its_row() -> None:
    for name, figure in {**FIGURES, **COUNTS}.items():
        assert figure.meaning in ROWS[name]
        assert f"| {figure.unit} |" in ROWS[name]
