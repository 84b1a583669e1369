"""How exactly the load generator told time before each phase: one line, with the worst of them."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.history.events import mapping_of, mappings_of, number_of, text_of
from changectl.core.ports import Json
from changectl.core.units import format_duration

_HEADING = "stamps within"


def exactness(measurements: Sequence[Json]) -> list[tuple[str, str]]:
    """The fact for "what was measured"; none where no phase had a self-test, as in older records."""
    tests = [found for body in measurements if (found := mapping_of(mapping_of(body, "summary"), "self_test"))]
    if not tests:
        return []
    best = [min(mappings_of(test, "tries"), key=lambda one: _seconds(one, "ttft_p99"), default={}) for test in tests]
    if not all(best):
        problems = dict.fromkeys(text_of(test, "problem") for test in tests if not mappings_of(test, "tries"))
        return [(_HEADING, f"not known: {'; '.join(problems)}")]
    first, each = (format_duration(max(_seconds(one, name) for one in best), 2) for name in ("ttft_p99", "tpot_p99"))
    before = "before each phase" if len(tests) > 1 else "before the phase"
    return [(_HEADING, f"{first} (first token), {each} (time per token), found {before} at a server of known pace")]


def _seconds(figures: Json, name: str) -> float:
    return number_of(figures, name) or 0.0
