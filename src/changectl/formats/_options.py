"""Finds an option among words: spellings, forms, negation, repetitions; how words are written is not known here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from changectl.core.settings import Key, Occurrence, Reading
from changectl.formats._program import find_program
from changectl.formats._text import ValueElsewhere, refuse, same_name

NEGATIVE_NUMBER = re.compile(r"-\.?\d\S*")
_HOLDS_OPTIONS = re.compile(r"ARG|OPT|FLAG|EXTRA|PARAM", re.IGNORECASE)
_BOOLEANS = frozenset({"true", "false"})
# Complete options of common engines that are also the beginning of longer ones: never an abbreviation.
_COMPLETE = """
    api alias backend batch cache chat config cpu device draft dtype embedding embeddings flash grammar grpc hf
    host http jinja keep load log lora metrics mlock mmap mmproj model numa parallel pooling port predict prio
    props quantization reasoning revision rope rpc runner seed slots spec speculative ssl task temp threads
    timeout tokenizer top tp trace verbose api-key ctx-size cpu-mask cpu-range hf-repo model-path tool-call
    cache-type draft-max model-repository override-generation-config chat-template served-model
"""
_COMPLETE_OPTIONS = frozenset(_COMPLETE.split())


class OptionWord(Protocol):
    """What a word has to tell, whatever file it stands in."""

    @property
    def value(self) -> str:
        """The decoded text."""

    @property
    def line(self) -> int:
        """1-based."""

    @property
    def splits(self) -> str:
        """The variable that stands for any number of words here; empty: an ordinary word."""

    def references_from(self, offset: int) -> tuple[str, ...]:
        """References (`$NAME`, `%i`) in the decoded text from an offset on."""


@dataclass(frozen=True, slots=True)
class Found:
    """One occurrence of the option."""

    first: int  # index of the word with the name
    last: int  # index of the word with the value
    keep: int  # characters of the last word before the value
    value: str
    line: int
    spelling: str
    bare: bool = False  # no value stands there: a switch


def names_of(key: Key) -> tuple[str, ...]:
    """Every spelling with its dashes."""
    return tuple(name if name.startswith("-") else f"--{name}" for name in key.names)


def find_options(words: Sequence[OptionWord], key: Key) -> list[Found]:
    """All occurrences of the key among the words, in order.

    Raises:
        ValueElsewhere: the value, or the whole option, may come from a variable.
        EditRefused: a form that cannot be told from others, or a wrapper that hides the command line.
    """
    values = [word.value for word in words]
    program = find_program(values)
    found: list[Found] = []
    index, end = program.first, end_of_options(values)
    while index < end:
        hit = _match(words, index, end, key)
        if hit:
            found.append(hit)
            index = hit.last
        else:
            _refuse_lookalikes(words[index], key)
        index += 1
    for behind in range(end, len(words)):
        if _match(words, behind, len(words), key):
            refuse(f"{values[behind]} stands behind a lone --, so it is not certain who reads it", words[behind].line)
    if not found:
        _refuse_hidden(words, program.wrapper, key)
    return found


def end_of_options(values: Sequence[str]) -> int:
    """The index of a standalone `--` after the program's own words begin, or the number of words."""
    first = find_program(values).first
    return next((index for index in range(first, len(values)) if values[index] == "--"), len(values))


def read_options(words: Sequence[OptionWord], key: Key) -> Reading:
    """The key's occurrences as callers see them."""
    hits = find_options(words, key)
    return Reading(tuple(Occurrence(hit.value, hit.line, hit.spelling) for hit in hits))


def list_options(words: Sequence[OptionWord], key: Key | None) -> dict[str, tuple[str, ...]]:
    """Every option and positional word: name to values. `key` tells that its own switches take no value."""
    values = [word.value for word in words]
    listed: dict[str, tuple[str, ...]] = {}
    index, end, positional = find_program(values).first, end_of_options(values), 0
    for place in range(index):
        listed[f"program#{place}"] = (values[place],)
    while index < len(values):
        hit = _match(words, index, end, key) if key and index < end else None
        if key and hit:
            name, value = _normal(names_of(key)[0]), hit.value
            index = hit.last
        elif index < end and _is_option(values[index]):
            name, has_value, value = values[index].partition("=")
            name = _normal(name)
            if not has_value and index + 1 < end and not _is_option(values[index + 1]):
                index, value = index + 1, values[index + 1]
            elif not has_value:
                value = "true"
        else:
            name, value, positional = f"#{positional}", values[index], positional + 1
        listed[name] = (*listed.get(name, ()), value)
        index += 1
    return listed


def _normal(name: str) -> str:
    dashes = len(name) - len(name.lstrip("-"))
    return name[:dashes] + name[dashes:].replace("_", "-")


def _is_option(value: str) -> bool:
    return value.startswith("-") and value not in ("-", "--") and not NEGATIVE_NUMBER.fullmatch(value)


def _match(words: Sequence[OptionWord], index: int, end: int, key: Key) -> Found | None:
    word = words[index]
    name, equals, value = word.value.partition("=")
    if key.negation and same_name(name, key.negation, key.underscores) and not equals:
        return Found(index, index, len(name), "false", word.line, name, bare=True)
    if not any(same_name(name, known, key.underscores) for known in names_of(key)):
        return None
    if equals:
        _refuse_references(word, len(name) + 1, key)
        return Found(index, index, len(name) + 1, value, word.line, name)
    following = words[index + 1] if index + 1 < end else None
    if key.type == "bool":
        if following and following.value.lower() in _BOOLEANS:
            return Found(index, index + 1, 0, following.value, word.line, name)
        return Found(index, index, len(name), "true", word.line, name, bare=True)
    if following is None or (_is_option(following.value) and not following.references_from(0)):
        refuse(f"{name} stands there without a value", word.line)
    _refuse_references(following, 0, key)
    return Found(index, index + 1, 0, following.value, word.line, name)


def _refuse_references(word: OptionWord, offset: int, key: Key) -> None:
    """Refuse a value that only the host can know."""
    for reference in word.references_from(offset):
        if reference.startswith("$"):
            name = reference[1:]
            raise ValueElsewhere(
                f"line {word.line}: the value of {key.names[0]} comes from the variable {name}; "
                f"change {name} where it is set (an env carrier)",
                name,
            )
        refuse(
            f"the value of {key.names[0]} contains the specifier {reference}, which only systemd resolves", word.line
        )


def _refuse_lookalikes(word: OptionWord, key: Key) -> None:
    """Refuse words that an engine may take for the key although they are not written as the key."""
    name = word.value.partition("=")[0]
    parts = word.value.split()
    for known in names_of(key):
        if len(parts) > 1 and any(same_name(part.partition("=")[0], known, key.underscores) for part in parts):
            refuse(
                f"{word.value!r} is one word with a space: it is not certain who reads {known}",
                word.line,
            )
        if not known.startswith("--") and re.fullmatch(re.escape(known) + r"-?\d+\S*", name):
            refuse(f"{word.value!r} may be {known} with its value attached; write it as two words", word.line)
        if known.startswith("--") and name.startswith("--"):
            _refuse_part_of_name(name, known, word.line, key.underscores)


def _refuse_part_of_name(name: str, known: str, line: int, underscores: bool) -> None:
    if underscores:
        name, known = _normal(name), _normal(known)
    if name.startswith(known + "."):
        refuse(f"{name} sets a part of {known}", line)
    # Three letters are the least that anybody abbreviates to.
    if len(name) >= 5 and known.startswith(name) and name != known and name[2:] not in _COMPLETE_OPTIONS:
        refuse(f"{name} may be an abbreviation of {known}; write the name in full", line)


def _refuse_hidden(words: Sequence[OptionWord], wrapper: str, key: Key) -> None:
    """The key is not among the words: refuse where it may nevertheless be set."""
    variables = [word for word in words if word.splits]
    if variables:
        # The one named after what it holds, else the last: options are usually added at the end.
        likely = next((word for word in variables if _HOLDS_OPTIONS.search(word.splits)), variables[-1])
        names = ", ".join(word.splits for word in variables)
        raise ValueElsewhere(
            f"line {likely.line}: {key.names[0]} is not on the command line, but variables may hold it ({names}): "
            f"look there (an env carrier with `at: {likely.splits}` and `then: flags`)",
            likely.splits,
            [word.splits for word in variables],
            insertable=bool(_HOLDS_OPTIONS.search(likely.splits)),
        )
    if wrapper:
        line = words[0].line if words else 0
        refuse(f"{key.names[0]} is not a plain word of the command line, and {wrapper}", line)
