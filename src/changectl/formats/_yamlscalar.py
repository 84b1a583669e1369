"""How one YAML scalar is written, so that every reader (YAML 1.1 and 1.2) takes it for the same value."""

from __future__ import annotations

import re
from typing import Literal

from changectl.formats._text import refuse
from changectl.formats._tree import Node

ScalarType = Literal["null", "bool", "int", "float", "odd", "str"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
# What YAML 1.1 readers (PyYAML, so vLLM) and 1.2 readers take for different things.
_ODD = re.compile(
    r"(?i:y|n|yes|no|on|off)"
    r"|[-+]?0[0-9_]+|[-+]?0[xob][0-9a-f_]+"
    r"|[-+]?[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+"
    r"|[-+]?[0-9]+\.|\+[0-9.]+|[-+]?\.[0-9]+"
    r"|[-+]?\.(?i:inf)|\.(?i:nan)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
    r"|=|<<"
)
_INT = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_SWITCHES = (("true", "false"), ("yes", "no"), ("on", "off"))


def type_of(text: str) -> ScalarType:
    """What an unquoted scalar is; "odd": readers disagree."""
    if text in _NULL:
        return "null"
    if text in _BOOL:
        return "bool"
    if _INT.fullmatch(text):
        return "int"
    if _FLOAT.fullmatch(text):
        return "float"
    return "odd" if _ODD.fullmatch(text) else "str"


def is_numeric(text: str) -> bool:
    """Whether an unquoted scalar is, or may be taken for, a number."""
    return type_of(text) in ("int", "float") or bool(re.match(r"[-+.]*[0-9]", text) and type_of(text) == "odd")


def fresh_scalar(value: str, quote: str, *, flow: bool, numbers_bare: bool) -> str:
    """A new text element: in the given quotes, or bare where that is certain to be read as the same text."""
    if quote:
        return _in_quotes(value, quote)
    if type_of(value) == "str":
        return value if _is_bare(value, flow) else _in_quotes(value, '"')
    return value if numbers_bare and type_of(value) in ("int", "float") else _in_quotes(value, '"')


def new_value(value: str, kind: str, name: str) -> str:
    """The scalar for a key that did not stand there.

    Args:
        value: the value.
        kind: the key's type, as `Key.type` has it.
        name: the key, for the refusal.

    Raises:
        EditRefused: the value of a number or switch would be read differently by different readers.
    """
    found = type_of(value)
    if kind == "bool" and found != "bool":
        refuse(f"{name} is true or false, and {value!r} is neither")
    if kind in ("int", "float", "bool") and found in ("int", "float", "bool"):
        return value
    if kind in ("int", "float") and found == "odd":
        _refuse_odd(value, 0)
    if found == "str" and _is_bare(value, True):
        return value
    return _in_quotes(value, "'" if '"' in value and "'" not in value else '"')


def new_scalar(old: Node, value: str, flow: bool) -> str:
    """The new value in the style of the old one, its type kept where a text would otherwise turn into a number.

    Raises:
        EditRefused: the old one spans lines, or the new one would be read differently by different readers.
    """
    if old.style in ("|", ">"):
        refuse("the value is a block of text (| or >); only one-line values can be replaced", old.line)
    if old.style:
        return _in_quotes(value, old.style)
    was, becomes = type_of(old.value), type_of(value)
    if was == "str":
        return value if becomes == "str" and _is_bare(value, flow) else _in_quotes(value, '"')
    if was == "bool" or old.value.lower() in ("yes", "no", "on", "off"):
        return _switched(old, value)
    if becomes == "odd":
        _refuse_odd(value, old.line)
    if becomes == "null":
        refuse(f"the new value {value!r} means nothing (null) in YAML", old.line)
    return value if becomes != "str" or _is_bare(value, flow) else _in_quotes(value, '"')


def _switched(old: Node, value: str) -> str:
    """True or false in the words used there: yes stays with no, True with False."""
    if value not in ("true", "false"):
        if type_of(value) in ("odd", "null", "bool"):
            _refuse_odd(value, old.line)
        return value if _is_bare(value, True) else _in_quotes(value, '"')
    for pair in _SWITCHES:
        if old.value.lower() in pair:
            word = pair[0] if value == "true" else pair[1]
            return word.upper() if old.value.isupper() else word.title() if old.value[:1].isupper() else word
    return value


def _refuse_odd(value: str, line: int) -> None:
    refuse(f"{value!r} is read differently by YAML 1.1 and 1.2; write the number or word in its plainest form", line)


def _in_quotes(value: str, quote: str) -> str:
    if quote == "'":
        return "'" + value.replace("'", "''") + "'"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_bare(value: str, flow: bool) -> bool:
    """Whether a text can stand without quotes."""
    if not value or value != value.strip() or value[0] in "!&*|>%@`\"'#,[]{}":
        return False
    if value[0] in "-?:" and (len(value) == 1 or value[1] in " \t"):
        return False
    if value in ("---", "...") or value.startswith(("--- ", "... ")):
        return False
    if flow and any(char in "[]{}," for char in value):
        return False
    if flow and ":" in value and not re.fullmatch(r"[^:]*(?::[^\s,:\[\]{}\"'][^:]*)*", value):
        return False
    return ": " not in value and not value.endswith(":") and " #" not in value and "\t#" not in value
