"""The words of a command line as they may be recorded and shown: secret ones as digests."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.command import Argument, quoted
from changectl.core.redaction.redactor import looks_secret
from changectl.workflow.secrets import Secrets


def shown_words(argv: Sequence[str], secrets: Secrets) -> list[str]:
    """Every word, in its place; what is secret or looks so, by itself or by the flag before it, as a digest."""
    flags = ["", *argv[:-1]]
    return [_shown(word, flag, secrets) for word, flag in zip(argv, flags, strict=True)]


def _shown(word: str, flag: str, secrets: Secrets) -> str:
    names_secret = flag.startswith("-") and "=" not in flag and looks_secret(flag.lstrip("-"))
    if names_secret and not word.startswith("-"):
        return secrets.digest(word)
    return secrets.redactor.text(word)


def difference_text(argument: Argument, before: Sequence[str], after: Sequence[str]) -> str:
    """One difference as people read it; the words as shown."""
    old = "absent" if argument.before is None else quoted(before[argument.before])
    new = "absent" if argument.after is None else quoted(after[argument.after])
    return f"{argument.name}: {old} -> {new}"
