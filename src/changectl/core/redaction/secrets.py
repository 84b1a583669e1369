"""Known secret values: the shapes in which they turn up elsewhere, and the wire they trip."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from changectl.core.errors import ChangectlError

SHORTEST = 6  # characters; shorter values are found everywhere by chance


def forms(secret: str) -> tuple[str, ...]:
    """The secret and every encoded shape of it, longest first; none when it is too short or blank."""
    if not _counts(secret):
        return ()
    quoted = {quote(secret, safe="", errors="surrogatepass"), quote(secret, errors="surrogatepass")}
    quoted.add(quote_plus(secret, errors="surrogatepass"))
    lower = {_lower_escapes(text) for text in quoted}
    escaped = {json.dumps(secret, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    slashed = {text.replace("/", r"\/") for text in escaped}
    twice = {json.dumps(text)[1:-1] for text in escaped}
    doubled = {secret.replace("'", "''"), secret.replace("%", "%%"), secret.replace("\\", "\\\\")}
    found = {secret, *quoted, *lower, *escaped, *slashed, *twice, *doubled, *_base64_cores(secret)}
    return tuple(sorted((form for form in found if len(form) >= SHORTEST), key=lambda form: (-len(form), form)))


def all_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    """The forms of all secrets, longest first, each once."""
    found = {form for secret in secrets for form in forms(secret)}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _counts(secret: str) -> bool:
    return len(secret.strip()) > 0 and len(secret) >= SHORTEST


def _lower_escapes(text: str) -> str:
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64_cores(secret: str) -> set[str]:
    """What of the secret's base64 does not depend on its neighbours, for each of the three positions it can start at.

    So it is found inside a longer encoded text too ("user:secret" of a Basic header).
    """
    raw = secret.encode("utf-8", errors="surrogatepass")
    cores = set()
    for offset in range(3):
        first = -(-offset * 8 // 6)  # characters that the bytes before it share
        whole = (offset + len(raw)) * 8 // 6  # characters that end within it
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            cores.add(encode(b"\0" * offset + raw).decode("ascii")[first:whole])
    return cores


class Tripwire:
    """Searches bytes that are about to be recorded for the run's known secrets, in all their forms."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = frozenset(secret for secret in secrets if _counts(secret))
        self._needles = tuple(form.encode("utf-8", errors="surrogatepass") for form in all_forms(self.secrets))

    def __repr__(self) -> str:
        return f"Tripwire({len(self.secrets)} secrets)"

    def finds(self, data: bytes) -> bool:
        """Whether a known secret stands in the data."""
        return any(needle in data for needle in self._needles)

    def check(self, sink: str, data: bytes) -> None:
        """Let the data pass or stop everything.

        Args:
            sink: what is being written, for the person who reads the message: "evidence", "event edit of run 7".
            data: the exact bytes, before compression.

        Raises:
            ChangectlError: reason `secret_in_record`; the text names the sink, never the secret.
        """
        if self.finds(data):
            message = f"a secret value stands in {sink}: it was not recorded"
            raise ChangectlError(message, reason="secret_in_record")
