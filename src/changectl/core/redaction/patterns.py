"""What looks like a secret: names of keys, and shapes of values that are secret under any name."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ANYWHERE = re.compile(r"secret|passw(?:or)?d|passphrase|credential|bearer|api[-_. ]?key|authorization", re.IGNORECASE)
_WORDS = frozenset({"auth", "private", "pwd", "passcode", "cookie", "token", "apikey", "authtoken", "accesskey"})
_KEY_OF = frozenset(
    {"access", "account", "admin", "aes", "auth", "client", "deploy", "encryption", "hmac", "host", "license", "master"}
    | {"private", "rsa", "secret", "service", "session", "shared", "signing", "ssh", "storage"}
)
# Inference engines speak of another kind of token all the time: max-num-batched-tokens, eos_token, tokenizer.
_MODEL_TOKEN = frozenset(
    {"bos", "cls", "end", "eos", "first", "image", "last", "mask", "max", "min", "next", "pad", "per", "sep", "special"}
    | {"stop", "unk"}
)
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def looks_secret(key: str) -> bool:
    """Whether a setting, variable, header or field of this name is likely to hold a secret value."""
    words = [word.lower() for word in _SPLIT.split(key) if word]
    if key in ("PWD", "OLDPWD") or not words:
        return False  # a shell's working folder
    if _ANYWHERE.search(key):
        return True
    for index, word in enumerate(words):
        before = words[index - 1] if index else ""
        if word == "token":
            # "token" names a secret where it ends the name; "token-budget" and "eos_token" are the model's.
            if index == len(words) - 1 and before not in _MODEL_TOKEN:
                return True
        elif word in _WORDS or (word in ("key", "keys") and before in _KEY_OF):
            return True
    return False


# A name begins where no name goes on, and ends where it ends: so a search never looks at the same text many times over.
_NAME = r"(?<![A-Za-z0-9_.])(?P<key>[A-Za-z_][-A-Za-z0-9_.]{0,255}+)"
_GAP = r"(?:[ \t]|\\\r?\n)++"  # a command line may go on in the next line

# Shapes that are secret under any name; "value" is what has to go.
_SHAPES = tuple(
    re.compile(pattern)
    for pattern in (
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----\r?\n?(?P<value>[^-]*+(?:-(?!----END)[^-]*+)*+)",
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}+://(?P<value>[^\s/@'\"]+)@",
        r"(?i:\b(?:bearer|basic)[ \t]+)(?P<value>[A-Za-z0-9._~+/=-]{6,})",
        r"(?<![A-Za-z0-9])(?P<value>(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|nvapi-|AKIA)[A-Za-z0-9_-]{8,})",
        # Short beginnings, which words of other kinds may have too: only with as many characters as such keys have.
        r"(?<![A-Za-z0-9_-])(?P<value>(?:gsk_|xai-|r8_|gh[ur]_|npm_|dckr_pat_|pypi-|ya29\.|(?:sk|rk)_live_)[A-Za-z0-9_-]{20,})",
        r"(?<![A-Za-z0-9_-])(?P<value>AIza[A-Za-z0-9_-]{35}|ASIA[A-Z0-9]{16}|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64})",
        r"(?<![A-Za-z0-9_-])(?P<value>eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{1,9999}+\.[A-Za-z0-9_-]*)",
    )
)

# What stands before a value, and how the value goes on (see `_value`).
_HEADS = tuple(
    (re.compile(pattern, re.MULTILINE), how)
    for pattern, how in (
        (rf"[?&]{_NAME}=", "query"),
        (rf"""(?P<q>['"])-{{0,2}}{_NAME}=""", "quoted"),  # "--api-key=abc" and "HF_TOKEN=abc def"
        (rf"""['"]-{{1,2}}{_NAME}['"]\s*+,\s*+(?P<q>['"])""", "quoted"),  # "--api-key", "abc"
        (rf"""^[ \t]*-[ \t]+['"]?-{{1,2}}{_NAME}['"]?[ \t]*\r?\n[ \t]*-[ \t]+""", "line"),  # the same as a YAML list
        (  # name: HF_TOKEN, value: abc, as Kubernetes and compose write it, with or without quotes
            rf"""\b(?:name|key)['"]?[ \t]*:[ \t]*['"]?{_NAME}['"]?\s*+(?:,\s*+)?['"]?value['"]?[ \t]*:[ \t]*""",
            "quoted_or_line",
        ),
        (rf"(?<![-\w])-{{1,2}}{_NAME}{_GAP}(?!-)", "word"),  # --api-key abc
        (rf"""^(?P<indent>[ \t]*)(?:-[ \t]+)?['"]?{_NAME}['"]?[ \t]*:[ \t]*[|>][-+0-9]*[ \t]*\r?\n""", "block"),
        (rf"""{_NAME}[ \t]*=[ \t]*(?P<q>\"{{3}}|'{{3}})""", "triple"),
        (rf"""{_NAME}['"]?[ \t]*[:=][ \t]*(?P<q>['"])""", "quoted"),  # "api_key": "abc"
        # a line of its own: api_key: abc def, export API_KEY=abc, X-Api-Key: abc
        (rf"""^[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+)?{_NAME}[ \t]*[:=][ \t]*(?=[^\s'"|>])""", "line"),
        (rf"{_NAME}=", "word"),  # -e HF_TOKEN=abc
        (rf"{_NAME}:[ \t]+(?![|>{{]|\${{)", "flow"),  # {api_key: abc, ...}
    )
)

_TAILS = {
    "query": re.compile(r"[^&\s'\"#]+"),
    "line": re.compile(r"[^\r\n]+"),
    "quoted_or_line": re.compile(r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^\r\n]+"""),
    # Pieces of a shell word: escaped, single-quoted, double-quoted, or bare.
    "word": re.compile(r"""(?:\\.|'[^'\n]*'|"(?:\\.|[^"\\\n])*"|[^\s'"\\])+"""),
    "flow": re.compile(r"[^\s,'\"}\]]+"),
    "'": re.compile(r"(?:\\.|[^'\\\n])+"),
    '"': re.compile(r'(?:\\.|[^"\\\n])+'),
}

# Values that stand for something else and are no secrets themselves: templates, variables, "nothing".
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}|\$\{[A-Za-z_]\w*\}|null|true|false|none|~", re.IGNORECASE)


def secret_spans(text: str) -> Iterator[list[tuple[int, int]]]:
    """Where secret-looking values stand: for each pattern a list of (start, end), which may overlap others' spans."""
    for pattern in _SHAPES:
        yield [match.span("value") for match in pattern.finditer(text)]
    for head, how in _HEADS:
        yield list(_keyed(head, how, text))


def _keyed(head: re.Pattern[str], how: str, text: str) -> Iterator[tuple[int, int]]:
    position = 0
    quotes = _Quotes(text)
    while match := head.search(text, position):
        position = match.end("key")  # a value may hold a key of its own: Environment=TOKEN=...
        if not looks_secret(match["key"]):
            continue
        start, end = _value(text, match, how)
        if how == "word":
            end = quotes.closing(start, end)
        if end > start and not _PLACEHOLDER.fullmatch(text[start:end].strip()):
            yield start, end
            position = max(end, position)


def _value(text: str, head: re.Match[str], how: str) -> tuple[int, int]:
    """Where the value behind this head stands; an empty span when there is none."""
    start = head.end()
    if how == "triple":
        end = text.find(head["q"], start)
        return start, end if end >= 0 else len(text)
    if how == "block":
        tail = re.compile(rf"(?:{re.escape(head['indent'])}[ \t]+[^\n]*(?:\n|$)|[ \t]*\r?\n)+")
    else:
        tail = _TAILS[head["q"] if how == "quoted" else how]
    found = tail.match(text, start)
    return start, found.end() if found else start


class _Quotes:
    """Knows which quotes are open on a line; asked from left to right, it reads every character once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._opened = ""

    def closing(self, start: int, end: int) -> int:
        """Where a word that began inside quotes ends: at the quote that closes them, not behind the next pair."""
        opened = self._open_at(start)
        if not opened or self._text[start - 1] == opened:  # a quote right before the value is its own
            return end
        found = _TAILS[opened].match(self._text, start, end)
        return found.end() if found else end

    def _open_at(self, place: int) -> str:
        line = self._text.rfind("\n", self._position, place)
        if line >= 0:
            self._position, self._opened = line + 1, ""
        while self._position < place:
            char = self._text[self._position]
            if char == "\\":
                self._position += 1
            elif not self._opened and char in "'\"":
                self._opened = char
            elif char == self._opened:
                self._opened = ""
            self._position += 1
        return self._opened
