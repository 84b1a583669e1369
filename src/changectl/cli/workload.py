"""`changectl workload`: write a workload, draw one from a log or a data set, or see how long its requests are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from changectl.cli._options import OutputOptions, example, output_options

if TYPE_CHECKING:
    from changectl.core.errors import InputError
    from changectl.reports.workload import Drawn

_PROTOCOLS = {"chat": "openai_chat", "completions": "openai_completions", "embeddings": "openai_embeddings",
              "kserve": "kserve_v2"}  # fmt: skip
_FROM_FILE = 200  # requests that are drawn by default


@click.command(
    short_help="Write or draw the requests of measurements.",
    epilog=example(
        "changectl workload sample --to inventory/workloads/chat.jsonl",
        "changectl workload from access.log --requests 200 --seed 7 --to inventory/workloads/chat.jsonl",
        "changectl workload show inventory/workloads/chat.jsonl",
    ),
)
@click.argument("what", type=click.Choice(["sample", "from", "show"]))
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--kind", type=click.Choice(list(_PROTOCOLS)), default="chat", help="What is asked for. Default: chat.")
@click.option("--requests", type=click.IntRange(1, 100_000), metavar="N", help="How many lines at most.")
@click.option("--seed", type=click.IntRange(0), default=0, metavar="N", help="Of a file, which ones. Default: 0.")
@click.option("--to", "target", metavar="FILE", type=click.Path(path_type=Path), help="Write there, not to stdout.")
@output_options
def command(
    what: str, file: Path | None, kind: str, requests: int | None, seed: int, target: Path | None, output: OutputOptions
) -> int:
    """Write the requests of measurements, one JSON object a line; nothing is fetched from anywhere.

    `sample` writes some to begin with: short and long inputs and conversations. `from FILE` draws them from what users
    really sent: a log of a proxy or an engine with the bodies of requests, or a data set of conversations, as JSON or
    one JSON object a line. The same seed takes the same ones, and their lengths are spread as those of all. Requests
    that hold what looks like a secret are left out and named. `show FILE` tells how long a workload's requests are.

    Lines go to stdout and what is told to stderr; with --to the lines go to that new file. Exit code: 0, 2 a file that
    cannot be used, or nothing in it.
    """
    from changectl.cli._new_file import write_new

    if what == "show":
        return _tell(_read(_needed(file, what)), str(file), None, output)
    if output.json and target is None:
        raise click.UsageError("with --json the lines need a file of their own: add --to FILE")
    if what == "sample":
        entries, drawn = _sample(file, kind, requests), None
    else:
        entries, drawn = _draw(_needed(file, what), kind, requests or _FROM_FILE, seed)
    lines = _lines(entries, kind, to_screen=target is None)
    if target is None:
        click.echo(lines, nl=False)
    else:
        write_new(target, lines, private=drawn is not None, hint="name a new one with --to")
    return _tell(entries, None if target is None else str(target), drawn, output, aside=target is None)


def _sample(file: Path | None, kind: str, requests: int | None) -> list[dict[str, Any]]:
    from changectl.core.workload.sample import MOST, REQUESTS, sample

    if file is not None:
        raise click.UsageError("`workload sample` reads no file: name the one to write with --to")
    if requests is not None and requests > MOST:
        raise click.UsageError(f"a sample has at most {MOST} lines: write --requests {MOST}, or draw them from a log")
    return sample(kind, requests or REQUESTS)


def _needed(file: Path | None, what: str) -> Path:
    if file is None:
        raise click.UsageError(f"`workload {what}` needs a file: changectl workload {what} FILE")
    return file


def _read(file: Path) -> list[dict[str, Any]]:
    from changectl.adapters.project_files import read_bytes, show
    from changectl.core.errors import InputError
    from changectl.core.workload.requests import load

    content = read_bytes(file)
    try:
        read = load(content, show(file))
    except InputError as error:
        try:  # texts to embed have no answer whose length could be limited
            read = load(content, show(file), _PROTOCOLS["embeddings"])
        except InputError:
            raise _log_named(content, file) or error from None
    return [dict(entry) for entry in read.entries]


def _log_named(content: bytes, file: Path) -> InputError | None:
    """What is the matter where the file is a log or a data set, from which a workload is drawn; None: it is neither."""
    from changectl.adapters.project_files import show
    from changectl.core.errors import InputError, Problem
    from changectl.core.workload.source import Candidate, candidates, objects

    text = content.decode("utf-8", "replace")
    (_, first) = next(objects(text), (0, None))
    if not isinstance(first, dict) or "id" in first or not isinstance(next(candidates(text, "chat")), Candidate):
        return None  # a workload's own line has an id: then its mistakes are worth more
    hint = f"draw one from it: changectl workload from {show(file)} --to NEW.jsonl"
    return InputError(Problem("this is a log or a data set, and not a workload", show(file), hint=hint))


def _draw(file: Path, kind: str, requests: int, seed: int) -> tuple[list[dict[str, Any]], Drawn]:
    from changectl.adapters.project_files import read_bytes, show
    from changectl.core.errors import InputError, Problem
    from changectl.core.workload.choice import choose, entries
    from changectl.core.workload.source import Candidate, LeftOut, candidates, text_of
    from changectl.reports.workload import Drawn

    every = list(candidates(text_of(read_bytes(file)), kind))
    found = [one for one in every if isinstance(one, Candidate)]
    left_out = [one for one in every if isinstance(one, LeftOut)]
    if not found:
        whys = ", ".join(sorted({one.why for one in left_out})) or "it is empty"
        hint = "see what is read: docs/how-to/write-a-workload.md; another kind of request: --kind"
        raise InputError(Problem(f"no request of kind {kind} was found in it: {whys}", show(file), hint=hint))
    taken = choose(found, requests, seed)
    return entries(taken), Drawn(found, taken, left_out, seed)


def _lines(entries: list[dict[str, Any]], kind: str, *, to_screen: bool) -> str:
    """The file's text; what measurements would refuse is never written. Raises InputError.

    A screen gets it in ASCII, which says the same: what users wrote could steer a terminal.
    """
    import json

    from changectl.core.workload.requests import load

    text = "".join(json.dumps(entry, ensure_ascii=to_screen) + "\n" for entry in entries)
    text = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair, as logs may have it
    load(text.encode("utf-8"), "the workload", _PROTOCOLS[kind])
    return text


def _tell(
    entries: list[dict[str, Any]], file: str | None, drawn: Drawn | None, output: OutputOptions, *, aside: bool = False
) -> int:
    """Say what it holds; `aside` where the lines themselves have stdout."""
    import sys

    from changectl.cli._present import print_blocks, print_document
    from changectl.reports import workload as report
    from changectl.reports.printer import Printer

    if output.json:
        print_document(report.as_json(entries, file, drawn), Printer())
    else:
        print_blocks(report.as_blocks(entries, file, drawn), Printer(out=sys.stderr) if aside else Printer())
    return 0
