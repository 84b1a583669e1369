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


# One piece of a shell word: escaped, single-quoted, double-quoted, or bare.
_SHELL_WORD = r"""(?:\\.|'[^'\n]*'|"(?:\\.|[^"\\\n])*"|[^\s'"\\])+"""
_GAP = r"(?:[ \t]|\\\r?\n)+"  # a command line may go on in the next line
_NAME = r"[A-Za-z_][-A-Za-z0-9_.]*"

# Every pattern's group "value" is what has to go; "key", where there is one, must look secret.
_VALUES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\r?\n?(?P<value>[^-]*(?:-(?!----END)[^-]*)*)",
        r"[A-Za-z][A-Za-z0-9+.-]*://(?P<value>[^\s/@'\"]+)@",
        r"(?i:\b(?:bearer|basic)[ \t]+)(?P<value>[A-Za-z0-9._~+/=-]{6,})",
        r"(?<![A-Za-z0-9])(?P<value>(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|nvapi-|AKIA)[A-Za-z0-9_-]{8,})",
        r"(?<![A-Za-z0-9])(?P<value>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)",
    )
)
_KEYED = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # ?access_token=... inside a URL
        rf"[?&](?P<key>{_NAME})=(?P<value>[^&\s'\"#]+)",
        # "--api-key=abc" and "HF_TOKEN=abc def", quoted as a whole
        rf"""(?P<q>['"])-{{0,2}}(?P<key>{_NAME})=(?P<value>(?:\\.|(?!(?P=q))[^\\\n])+)""",
        # "--api-key", "abc": two members of a list
        rf"""(?P<q>['"])-{{1,2}}(?P<key>{_NAME})(?P=q)\s*,\s*(?P<p>['"])(?P<value>(?:\\.|(?!(?P=p))[^\\\n])+)""",
        # - --api-key / - abc: two members of a YAML list
        rf"""^[ \t]*-[ \t]+['"]?-{{1,2}}(?P<key>{_NAME})['"]?[ \t]*\r?\n[ \t]*-[ \t]+(?P<value>[^\r\n]+)""",
        # name: HF_TOKEN / value: abc, as Kubernetes and compose write it; also "name": "HF_TOKEN", "value": "abc"
        rf"""['"]?\b(?:name|key)['"]?[ \t]*:[ \t]*['"]?(?P<key>{_NAME})['"]?\s*,?\s*['"]?value['"]?[ \t]*:[ \t]*"""
        r"""(?P<value>"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^\r\n]+)""",
        # --api-key abc
        rf"""(?<![-\w])-{{1,2}}(?P<key>{_NAME}){_GAP}(?P<value>(?!-){_SHELL_WORD})""",
        # api_key: | and the indented lines below it
        rf"""^(?P<indent>[ \t]*)(?:-[ \t]+)?['"]?(?P<key>{_NAME})['"]?[ \t]*:[ \t]*[|>][-+0-9]*[ \t]*\r?\n"""
        r"""(?P<value>(?:(?P=indent)[ \t]+[^\n]*\n?|[ \t]*\r?\n)+)""",
        # api_key = \"\"\" ... \"\"\"
        rf"""(?P<key>{_NAME})[ \t]*=[ \t]*(?P<q>\"\"\"|''')(?P<value>(?:(?!(?P=q))[\s\S])+)""",
        # "api_key": "abc" and api_key: "abc" and api_key = "abc"
        rf"""(?P<key>{_NAME})['"]?[ \t]*[:=][ \t]*(?P<q>['"])(?P<value>(?:\\.|(?!(?P=q))[^\\\n])+)""",
        # a line of its own: api_key: abc def, API_KEY=abc def, export API_KEY=abc, X-Api-Key: abc
        rf"""^[ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+)?(?P<key>{_NAME})[ \t]*[:=][ \t]*(?P<value>[^\s'"|>][^\r\n]*)""",
        # inside a line: -e HF_TOKEN=abc, {api_key: abc, ...}
        rf"""(?<![\w.])-{{0,2}}(?P<key>{_NAME})=(?P<value>{_SHELL_WORD})""",
        rf"""(?P<key>{_NAME}):[ \t]+(?P<value>(?![|>{{]|\${{)[^\s,'"}}\]]+)""",
    )
)


# Values that stand for something else and are no secrets themselves: templates, variables, "nothing".
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}|\$\{[A-Za-z_]\w*\}|null|true|false|none|~", re.IGNORECASE)


def secret_spans(text: str) -> Iterator[list[tuple[int, int]]]:
    """Where secret-looking values stand: one list of (start, end) for each pattern."""
    for pattern in _VALUES:
        yield [match.span("value") for match in pattern.finditer(text)]
    for pattern in _KEYED:
        yield list(_keyed(pattern, text))


def _keyed(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    position = 0
    while match := pattern.search(text, position):
        if not looks_secret(match["key"]):
            position = match.end("key")  # not behind its value: that may hold a key of its own (Environment=TOKEN=...)
            continue
        start, end = match.span("value")
        end = _closing_quote(text, start, end)
        position = max(end, match.end("key"))
        if not _PLACEHOLDER.fullmatch(text[start:end].strip()):
            yield start, end


def _closing_quote(text: str, start: int, end: int) -> int:
    """Where a value that began inside quotes ends: at the quote that closes them, not behind the next pair."""
    opened = ""
    position = text.rfind("\n", 0, start) + 1
    while position < start:
        char = text[position]
        if char == "\\":
            position += 1
        elif not opened and char in "'\"":
            opened = char
        elif char == opened:
            opened = ""
        position += 1
    # A quote right before the value is its own, and the pattern has taken care of it.
    if not opened or text[start - 1] == opened:
        return end
    closing = re.compile(rf"(?:\\.|[^\\{opened}])*").match(text, start, end)
    return closing.end() if closing and closing.end() > start else end
