"""The base of everything an operator writes: strict models whose every complaint says what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from changectl.core.declared.source import Path, Source
from changectl.core.errors import InputError, Problem

FAULT = "changectl"
M = TypeVar("M", bound=BaseModel)


class Fault(NamedTuple):
    """One complaint inside a model, relative to it."""

    message: str
    hint: str = ""
    at: Path = ()  # where below the value that is being checked
    key: bool = False  # the key itself is wrong, not its value


def fault(message: str, hint: str = "") -> PydanticCustomError:
    """One complaint about exactly the value that a validator looks at; raise it there."""
    return _custom(Fault(message, hint))


def faults(found: Iterable[Fault]) -> ValidationError:
    """Several complaints at once, each with its place below the value that a validator looks at; raise it there."""
    lines = [InitErrorDetails(type=_custom(one), loc=one.at, input=None) for one in found]
    return ValidationError.from_exception_data("grammar", lines, hide_input=True)


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: the closest known one if there is one, and all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    listed = f"known: {', '.join(names)}" if names else "nothing is known here"
    return f"did you mean `{close[0]}`? {listed}" if close else listed


def not_yet(value: str, supported: str, hint: str) -> PydanticCustomError:
    """The complaint for words of the grammar that this version cannot do."""
    return fault(f"{value} is not supported in this version (supported: {supported})", hint)


class Grammar(BaseModel):
    """A mapping of known keys. Unknown keys are refused; all complaints about the mapping come together."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    missing_hints: ClassVar[Mapping[str, str]] = {}  # key -> what to write, where the field's example is not enough

    @model_validator(mode="wrap")
    @classmethod
    def _complain_in_our_words(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise fault("a mapping belongs here", f"write keys and values: {', '.join(cls.known_keys())}")
        known = cls.known_keys()
        found = [_unknown(key, known) for key in value if key not in known]
        try:
            result = handler({key: item for key, item in value.items() if key in known})
        except ValidationError as error:
            raise faults([*found, *(cls._translate(details) for details in error.errors())]) from None
        if found:
            raise faults(found)
        return result

    @classmethod
    def known_keys(cls) -> tuple[str, ...]:
        """The keys as operators write them, in the order of the grammar."""
        return tuple(info.alias or name for name, info in cls.model_fields.items())

    @classmethod
    def _translate(cls, details: ErrorDetails) -> Fault:
        complaint = as_fault(details)
        if details["type"] != "missing" or len(complaint.at) != 1:
            return complaint
        key = str(complaint.at[0])
        return complaint._replace(hint=cls.missing_hints.get(key) or cls._example_of(key))

    @classmethod
    def _example_of(cls, key: str) -> str:
        for name, info in cls.model_fields.items():
            if (info.alias or name) == key:
                example = f"write `{key}: {info.examples[0]}`" if info.examples else f"write `{key}: ...`"
                return f"{example} ({info.description})" if info.description else example
        return ""


def validate(source: Source, model: type[M], context: Mapping[str, Any] | None = None) -> M:
    """Read a model from a source.

    Raises:
        InputError: with every problem of the file, in the order of its lines.
    """
    problems = list(source.problems)
    try:
        result = model.model_validate(source.data, context=dict(context or {}))
    except ValidationError as error:
        problems += place(source, error)
    if problems:
        raise InputError(in_file_order(problems))
    return result


def place(source: Source, error: ValidationError) -> list[Problem]:
    """The complaints of a validation as problems of a file; a path that is already reported is not reported twice."""
    reported = {problem.path for problem in source.problems}
    placed = []
    for details in error.errors():
        complaint = as_fault(details)
        problem = source.problem(_without_tags(complaint.at), complaint.message, complaint.hint, key=complaint.key)
        if problem.path not in reported:
            placed.append(problem)
    return placed


def in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by line and column."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line, problem.column))


def as_fault(details: ErrorDetails) -> Fault:
    """One of pydantic's error records in the words of operators."""
    path = details["loc"]
    context = details.get("ctx", {})
    if details["type"] == FAULT:
        return Fault(context["message"], context["hint"], path, context["key"])
    key = str(path[-1]) if path else "value"
    words = _WORDS.get(details["type"])
    message, hint = words(key, context) if words else (str(details["msg"]), "")
    return Fault(message, hint, path)


def _unknown(key: Any, known: Iterable[str]) -> Fault:
    return Fault(f"unknown key `{key}`", nearest(str(key), known), (str(key),), key=True)


def _custom(complaint: Fault) -> PydanticCustomError:
    context = {"message": complaint.message, "hint": complaint.hint, "key": complaint.key}
    return PydanticCustomError(FAULT, "{message}", context)


def _without_tags(path: Path) -> Path:
    """The path without what pydantic adds for alternatives (`<group>`) and mapping keys (`[key]`)."""
    return tuple(part for part in path if isinstance(part, int) or not (part.startswith("<") or part == "[key]"))


def _words_value(_key: str, context: Mapping[str, Any]) -> tuple[str, str]:
    """A parser's ValueError already says what to write, after its first semicolon."""
    message, _, hint = str(context.get("error", "not usable")).partition("; ")
    return message, hint


_WORDS: dict[str, Callable[[str, Mapping[str, Any]], tuple[str, str]]] = {
    "missing": lambda key, _: (f"`{key}` is missing", f"write `{key}: ...`"),
    "string_type": lambda key, _: ("one text belongs here", f"write `{key}: text`, without list or mapping"),
    "int_parsing": lambda key, _: ("a whole number belongs here", f"for example `{key}: 1`"),
    "int_type": lambda key, _: ("a whole number belongs here", f"for example `{key}: 1`"),
    "int_from_float": lambda key, _: ("a whole number belongs here", f"for example `{key}: 1`"),
    "int_parsing_size": lambda _key, _: ("the number is too large", ""),
    "bool_parsing": lambda key, _: ("true or false belongs here", f"write `{key}: true` or `{key}: false`"),
    "bool_type": lambda key, _: ("true or false belongs here", f"write `{key}: true` or `{key}: false`"),
    "list_type": lambda _key, _: ("a list belongs here", "write one `- ...` line per item"),
    "tuple_type": lambda _key, _: ("a list belongs here", "write one `- ...` line per item"),
    "dict_type": lambda _key, _: ("a mapping belongs here", "write `key: value` pairs"),
    "string_too_short": lambda key, _: (f"`{key}` is empty", f"write `{key}: text`"),
    "greater_than_equal": lambda _key, context: ("the number is too small", f"at least {context.get('ge')}"),
    "less_than_equal": lambda _key, context: ("the number is too large", f"at most {context.get('le')}"),
    "literal_error": lambda key, context: (f"not a known word for `{key}`", f"one of: {context.get('expected')}"),
    "value_error": _words_value,
}
