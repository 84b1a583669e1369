"""Jinja2 templates in operators' files, in the sandbox. What a template gives may be secret: no message shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, meta
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from changectl.core.declared.fields import is_template
from changectl.core.declared.source import Path, Source, show_path
from changectl.core.errors import Problem

MAXIMUM_ROUNDS = 10  # a variable of the inventory may itself be a template
MAXIMUM_LENGTH = 65_536


class Renderer:
    """Walks the data of one service file."""

    def __init__(self, source: Source, variables: Mapping[str, Any], host: str) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._variables = variables
        self._where = f" for host {host}" if host else ""
        self._filled: set[str] = set()
        self._environment = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)

    def fill(self, data: Any, path: Path) -> Any:
        """The data with every template filled; problems are gathered."""
        if isinstance(data, dict):
            return {key: self.fill(item, (*path, key)) for key, item in data.items()}
        if isinstance(data, list):
            return [self.fill(item, (*path, index)) for index, item in enumerate(data)]
        return self._text(data, path) if is_template(data) else data

    def check(self, data: Any, path: Path) -> None:
        """Read every template without filling it."""
        if isinstance(data, dict | list):
            for key, item in data.items() if isinstance(data, dict) else enumerate(data):
                self.check(item, (*path, key))
        elif is_template(data):
            try:
                self._environment.parse(data)
            except (TemplateSyntaxError, RecursionError) as error:
                message = getattr(error, "message", None) or "nested too deeply"
                self._report(path, f"not a readable template: {message}", 'write for example `"{{ ansible_host }}"`')

    def without_values(self, problem: Problem) -> Problem:
        """The same problem without what a template gave, which may be secret."""
        near = [path for path in self._filled if _related(path, problem.path)]
        if not near:
            return problem
        hint = f"look at the variables that `{near[0]}` uses{self._where}; the value is not shown, it may be secret"
        return Problem("what the template gives does not fit here", problem.file, problem.line, problem.column,
                       problem.path, hint)  # fmt: skip

    def _text(self, text: str, path: Path) -> str:
        self._filled.add(show_path(path))
        result = text
        for _ in range(MAXIMUM_ROUNDS):
            filled = self._once(result, path)
            if filled is None:
                return text
            if not is_template(filled) or filled == result:
                return filled
            result = filled
        self._report(path, f"the variables{self._where} refer to each other without end", "give them values")
        return text

    def _once(self, text: str, path: Path) -> str | None:
        try:
            filled = self._environment.from_string(text).render(self._variables)
        except UndefinedError:
            self._report(
                path, self._undefined(text), "define it in the inventory: host_vars, group_vars or a vault file"
            )
            return None
        except SecurityError:
            self._report(path, "the template does what templates may not do here", "use variables and plain filters")
            return None
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
            # The error's own text may hold values, and its traceback the variables.
            self._report(path, f"the template cannot be filled{self._where}", "use variables and plain filters")
            return None
        if len(filled) > MAXIMUM_LENGTH:
            self._report(path, "what the template gives is too long", "use variables and plain filters")
            return None
        return filled

    def _undefined(self, text: str) -> str:
        missing = sorted(meta.find_undeclared_variables(self._environment.parse(text)) - set(self._variables))
        if not missing:
            return f"a variable has no such part{self._where}"
        named = ", ".join(f"`{name}`" for name in missing)
        return f"variable {named} is not defined{self._where}"

    def _report(self, path: Path, message: str, hint: str) -> None:
        self.problems.append(self._source.problem(path, message, hint))


def check(source: Source) -> list[Problem]:
    """Templates that cannot be read, before any host is known."""
    renderer = Renderer(source, {}, "")
    renderer.check(source.data, ())
    return renderer.problems


def _related(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/") or not other
