"""What was waited for, checked, proven and kept, as sentences. Bodies are those of the events (journal.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from changectl.core.history.events import items_of, mapping_of, number_of, text_of
from changectl.core.ports import Json
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Heading, Line, Verbatim

LAST_WORDS = 5  # lines of a log that a screen has room for
_LONG = ("log", "report")  # many lines of somebody else's output
Sentences = Callable[[Json], list[str]]


def ready(bodies: Sequence[Json]) -> list[Block]:
    """How long each instance took until it answered, or why it did not."""
    return _told("ready", bodies, _ready)


def last_words(bodies: Sequence[Json]) -> list[Block]:
    """The end of the log of each start that failed without a cause that the engine is known for."""
    blocks: list[Block] = []
    for body in bodies:
        lines = [line for line in text_of(body, "log").splitlines() if line.strip()]
        if body.get("ok") is False and lines and not text_of(body, "line"):
            blocks.append(Line(f"the last lines of the log on {text_of(body, 'host')}:"))
            blocks.append(Verbatim("\n".join(f"  {line.strip()}" for line in lines[-LAST_WORDS:])))
    return blocks


def checks(bodies: Sequence[Json]) -> list[Block]:
    """What the plan's own tests said."""
    return _told("checks", bodies, _checks)


def proofs(bodies: Sequence[Json]) -> list[Block]:
    """What was proven of the way back, or what was missing."""
    return _told("proof of the way back", bodies, _proof)


def evidence(bodies: Sequence[Json]) -> list[Block]:
    """What was kept of a failed attempt, and what could not be."""
    return _told("evidence kept", bodies, _evidence)


def _told(name: str, bodies: Sequence[Json], sentences: Sentences) -> list[Block]:
    if not bodies:
        return []
    blocks: list[Block] = [Heading(name, 3)]
    for body in bodies:
        failed = False in (body.get("ok"), body.get("verified"))
        first, *others = sentences(body)
        blocks.append(Line(f"- {text_of(body, 'host')}: {first}", "bad" if failed else "plain"))
        blocks += [Line(f"- {other}", "warning") for other in others]
        blocks += [Verbatim(text_of(body, key)) for key in _LONG if text_of(body, key)]
    return blocks


def _ready(body: Json) -> list[str]:
    took = words.seconds(number_of(body, "seconds"))
    source = text_of(body, "deadline_source")
    deadline = f"deadline {words.seconds(number_of(body, 'deadline'))}" + (f": {source}" if source else "")
    if body.get("ok") is False:
        why = _joined(body, "message", "line", "hint")
        return [f"no answer after {took} ({deadline}){': ' + why if why else ''}"]
    detail = text_of(body, "detail")
    return [f"answered after {took} ({deadline}){': ' + detail if detail else ''}"]


def _checks(body: Json) -> list[str]:
    if "passed" not in body and "failed" not in body:
        return [f"could not be run: {_joined(body, 'reason', 'message')}"]
    return [f"{words.plain(body.get('passed', 0))} passed, {words.plain(body.get('failed', 0))} failed"]


def _proof(body: Json) -> list[str]:
    missing = [str(one) for one in items_of(body, "missing")]
    equal = _parts(body)
    if body.get("verified") is True:
        return [f"proven: {'; '.join(equal) or 'nothing of it is recorded'}"]
    said = missing or [_joined(body, "reason", "message") or "it did not come to an end"]
    return [f"NOT proven: {'; '.join(said)}", *([f"as saved: {'; '.join(equal)}"] if equal else [])]


def _parts(body: Json) -> list[str]:
    """What was found to be as it was saved."""
    files = [path for path, equal in mapping_of(body, "files").items() if equal is True]
    named = (("process", "the process runs as before"), ("model", "the model's files are the saved ones"))
    told = [f"{', '.join(files)} equal to what was saved"] if files else []
    return told + [text for key, text in named if body.get(key) is True]


def _evidence(body: Json) -> list[str]:
    if body.get("ok") is False:
        return [f"nothing could be kept: {_joined(body, 'reason', 'message')}"]
    gaps: Mapping[str, Any] = mapping_of(body, "missing")
    kept = f"log, metrics and host figures, sha256 {text_of(body, 'blob')}"
    return [kept, *(f"not kept: {name}: {words.plain(why)}" for name, why in gaps.items())]


def _joined(body: Json, *names: str) -> str:
    return ": ".join(text for name in names if (text := text_of(body, name)))
