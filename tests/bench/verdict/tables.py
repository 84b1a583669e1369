"""The tables of the proof, as text that Markdown shows as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.bench.verdict.carry_out import Tally
from tests.bench.verdict.cells import Cell

Tried = Sequence[tuple[Cell, Tally]]
_VERDICTS = ("improved", "unchanged", "regressed", "inconclusive", "invalid", "no_gross_harm", "refused")


def floors(tried: Tried) -> str:
    """Each cell with a floor, its counts, and whether it holds."""
    rows = []
    for cell, tally in tried:
        for floor in cell.floors:
            count = tally.count(floor)
            low, high = tally.interval(count)
            rows.append([
                cell.name, str(floor), f"{count} of {tally.trials}", f"{_percent(low)} to {_percent(high)}",
                *_cost(tally), "holds" if tally.holds(floor) else "FAILS",
            ])  # fmt: skip
        if cell.within is not None:
            rows.append([
                cell.name, f"over within {100 * cell.within:g} % of the longest time", f"{100 * tally.latest:.1f} %",
                "",
                *_cost(tally), "holds" if tally.latest <= cell.within else "FAILS",
            ])  # fmt: skip
    head = ["cell", "floor", "seen", "95 % interval", "pairs", "minutes", ""]
    return _table(head, rows)


def verdicts(tried: Tried) -> str:
    """Each cell with all of its verdicts, in percent."""
    rows = [
        [cell.name, *(_share(tally, tally.verdicts[word]) for word in _VERDICTS), *_cost(tally), str(tally.trials)]
        for cell, tally in tried
    ]
    return _table(["cell", *_VERDICTS, "pairs", "minutes", "trials"], rows)


def rivals(tried: Tried) -> str:
    """What each tool called regressed, in percent, of the same records; and what it could not decide."""
    own = [(cell, tally) for cell, tally in tried if tally.rivals]
    names = list(own[0][1].rivals) if own else []
    rows = [
        [
            f"{cell.effect.name}, {cell.world.name}",
            _said(tally.verdicts["regressed"], tally.trials - tally.kept - tally.verdicts["regressed"], tally.trials),
            *(
                _said(tally.rivals[name]["regressed"], tally.rivals[name]["inconclusive"], tally.trials)
                for name in names
            ),
        ]
        for cell, tally in own
    ]
    return _table(["world", "changectl", *names], rows)


def _said(regressed: int, undecided: int, trials: int) -> str:
    shown = f"{100 * regressed / trials:.3g}"
    return f"{shown} ({100 * undecided / trials:.3g})" if undecided else shown


def _cost(tally: Tally) -> list[str]:
    return [f"{tally.pairs / tally.trials:.1f}", f"{tally.minutes / tally.trials:.0f}"]


def _share(tally: Tally, count: int) -> str:
    return f"{100 * count / tally.trials:.3g}" if count else ""


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(shown)
