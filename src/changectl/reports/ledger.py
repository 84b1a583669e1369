"""How often verdicts were wrong: rates with what they stand on, who judged, and what nobody has judged."""

from __future__ import annotations

from typing import Any

from changectl.core.replaying.ledger import Entry, Ledger, Opinion, Rate
from changectl.core.units import format_share
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Command, Heading, Line, Table
from changectl.reports._runs import FORMAT

_BY = {"operator": "operator", "watch": "its watch", "later_baseline": "next baseline"}
_SAID = {"keep": "kept", "revert": "taken back"}
_SOURCE = "the interval covers 95 %: Clopper and Pearson, Biometrika 26 (1934) 404. Those judged are no random sample"
_ONE_SIDED = (
    "of what was taken back, and kept as improved or unchanged, the next baseline can only say that it was wrong"
)


def as_json(found: Ledger, service: str | None) -> dict[str, Any]:
    """The document of `changectl ledger --json`."""
    return {
        "format": FORMAT,
        "service": service,
        "false_reverts": found.rate("revert").to_json(),
        "missed": found.rate("keep").to_json(),
        "entries": [entry.to_json() for entry in found.entries],
        "unjudged": [entry.name for entry in found.unjudged],
    }


def as_blocks(found: Ledger) -> list[Block]:
    """What people read."""
    if not found.entries:
        return [Line("no verdict has said anything yet that could be right or wrong", "quiet")]
    rates = [found.rate("revert"), found.rate("keep")]
    cells = [
        ["false reverts", "changes taken back for harm", *_rate(rates[0])],
        ["missed", "changes kept on a verdict", *_rate(rates[1])],
    ]
    blocks: list[Block] = [Table(("rate", "of", "wrong", "judged", "verdicts", "share", "interval"), cells)]
    if any(rate.judged for rate in rates):
        blocks += [Line(_SOURCE, "quiet"), Line(_ONE_SIDED, "quiet")]
    else:
        blocks.append(
            Line("nobody has judged any verdict yet: nothing is known of how often they are wrong", "warning")
        )
    judged = [(entry, opinion) for entry in found.entries for opinion in entry.opinions]
    if judged:
        rows = [_opinion(entry, opinion) for entry, opinion in judged]
        blocks += [
            Heading("judged since", 2),
            Table(("verdict of", "said", "by", "opinion", "when (UTC)", "why"), rows),
        ]
    return [*blocks, *_unjudged(found)]


def _rate(rate: Rate) -> list[str]:
    low, high = rate.interval
    share = "not known" if rate.share is None else format_share(rate.share)
    between = f"{format_share(low)} to {format_share(high)}" if rate.judged else "anything"
    return [str(rate.wrong), str(rate.judged), str(rate.verdicts), share, between]


def _opinion(entry: Entry, opinion: Opinion) -> list[str]:
    where = f" (run {opinion.run})" if opinion.run != entry.run else ""
    word = "right" if opinion.right else "wrong"
    said = f"{entry.verdict}, {_SAID[entry.said]}"
    return [entry.name, said, _BY[opinion.by], word, words.minute(opinion.at), f"{opinion.why}{where}"]


def _unjudged(found: Ledger) -> list[Block]:
    left = found.unjudged
    if not left:
        return []
    rows = [(entry.name, words.minute(entry.at), entry.service, entry.verdict, _SAID[entry.said]) for entry in left]
    command = Command(f"changectl mark {left[-1].name} right", "say what you know of one, right or wrong")
    return [
        Heading("nobody has judged", 2),
        Table(("verdict of", "when (UTC)", "service", "verdict", "change"), rows),
        command,
    ]
