"""Redaction: secret values leave, the shape of the text stays, and equal secrets still look equal.

A value is replaced by a short salted digest, so that a reader sees THAT a secret changed but not from what to what.
Values known to be secret never survive; what merely looks secret is found by name and shape: a help, not a promise.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import re
from collections.abc import Iterable

from changectl.core.redaction.patterns import looks_secret, secret_spans
from changectl.core.redaction.secrets import SHORTEST, Tripwire, all_forms, forms

__all__ = ["SHORTEST", "Redactor", "Tripwire", "forms", "looks_secret", "redact_diff", "redact_text"]

# No piece of a marker is six characters long and the same in all markers: no known secret can be part of one, except by
# a chance that nobody can arrange without the salt.
_MARKER = re.compile(r"<\*[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}\*>")


class Redactor:
    """Redacts with one salt and one set of known secrets."""

    def __init__(self, known_secrets: Iterable[str] = (), *, salt: bytes = b"") -> None:
        self._salt = salt
        self._forms = all_forms(known_secrets)
        self._known = re.compile("|".join(map(re.escape, self._forms))) if self._forms else None

    def marker(self, value: str) -> str:
        """What stands in place of the value."""
        digest = hmac.new(self._salt, value.encode("utf-8", errors="surrogatepass"), hashlib.sha256).hexdigest()
        return f"<*{digest[:4]}-{digest[4:8]}-{digest[8:12]}*>"

    def text(self, text: str) -> str:
        """The text without known secrets, in any of their forms, and without what looks secret."""
        text = self.known(text)
        parts, done = [], 0
        for start, end in _merge(span for spans in secret_spans(text) for span in spans):
            value = text[start:end]
            parts += [text[done:start], value if _MARKER.fullmatch(value.strip()) else self._hide(value)]
            done = end
        return self.known("".join([*parts, text[done:]]))

    def known(self, text: str) -> str:
        """The text without known secrets."""
        if self._known is None:
            return text
        for _ in range(3):  # a marker beside old text may, by bad luck, spell a secret again
            text = self._known.sub(lambda match: self._hide(match[0]), text)
            if not self._known.search(text):
                return text
        return self.marker(text)

    def diff(self, before: bytes | None, after: bytes | None, path: str) -> str:
        """A unified diff of the redacted contents; None: the file is absent. Empty when nothing differs.

        A file that is not UTF-8 text is told apart by size and salted digest alone.
        """
        if before == after:
            return ""
        old, new = _decode(before), _decode(after)
        name = self.text(path.replace("\n", "\\n"))
        if old is None or new is None:
            return self._binary(before, after, name)
        labels = [
            f"{name} (absent)" if side is None else f"{name} ({when})"
            for side, when in ((before, "before"), (after, "after"))
        ]
        lines = difflib.unified_diff(_lines(self.text(old)), _lines(self.text(new)), labels[0], labels[1])
        return self.known("".join(_ended(line) for line in lines))

    def _hide(self, value: str) -> str:
        """Markers for a value line by line, so that line numbers stay true; blanks around it and quotes stay."""
        return "".join(self._hide_line(line) for line in re.split(r"(\r?\n)", value))

    def _hide_line(self, line: str) -> str:
        core = line.strip()
        if not core:
            return line
        start = line.index(core)
        return line[:start] + self.marker(core) + line[start + len(core) :]

    def _binary(self, before: bytes | None, after: bytes | None, name: str) -> str:
        sides = [
            "absent" if side is None else f"{len(side)} bytes {self.marker(side.hex())}" for side in (before, after)
        ]
        return f"binary file {name} differs: {sides[0]} -> {sides[1]}\n"


def redact_text(text: str, known_secrets: Iterable[str] = (), *, salt: bytes = b"") -> str:
    """See `Redactor.text`."""
    return Redactor(known_secrets, salt=salt).text(text)


def redact_diff(
    before: bytes | None, after: bytes | None, path: str, known_secrets: Iterable[str] = (), *, salt: bytes = b""
) -> str:
    """See `Redactor.diff`."""
    return Redactor(known_secrets, salt=salt).diff(before, after, path)


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _decode(data: bytes | None) -> str | None:
    if data is None:
        return ""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _lines(text: str) -> list[str]:
    # Only "\n" ends a line: str.splitlines would also split at form feeds and separators inside a value.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
