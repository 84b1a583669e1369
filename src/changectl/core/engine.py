"""What an inference engine is to a change: its settings, how to ask it, and how to understand its answers and failures.

Everything an engine does is pure: it says which requests to send and reads the pages that came back; the host program
does the sending.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from changectl.core.settings import Setting, Value
from changectl.core.telemetry.engine_series import MetricTable
from changectl.core.telemetry.prometheus import Metrics, PageError, parse

# The kinds of places an engine reads its settings from.
Source = Literal["flags", "file", "env"]
ReadyState = Literal["ready", "loading", "not_serving", "wrong_model"]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One HTTP request that the host program sends to the service, named so that its page can be found again."""

    name: str
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)  # may hold a token: never recorded
    body: str | None = None
    timeout: float = 10.0  # seconds

    def as_args(self) -> dict[str, Any]:
        """The request as the host call `probe` takes it."""
        return {
            "name": self.name,
            "method": self.method,
            "url": self.url,
            "headers": dict(self.headers),
            "body": self.body,
            "timeout": self.timeout,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to one request: either a status with body, or an error and no status."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    error: str | None = None  # refused, timed out, ...: no answer at all
    seconds: float | None = None

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Page:
        """One entry of the host call `probe`."""
        headers = {str(name).lower(): str(value) for name, value in (answer.get("headers") or {}).items()}
        return cls(answer.get("status"), headers, answer.get("body") or "", answer.get("error"), answer.get("seconds"))

    @property
    def ok(self) -> bool:
        """Whether the service answered 200."""
        return self.error is None and self.status == 200

    def json(self) -> Any:
        """The body as JSON; None when the page is not 200 or not JSON (the caller treats both as "not exposed")."""
        if not self.ok:
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):  # nested as deeply as no honest page is
            return None

    def metrics(self) -> Metrics | None:
        """The body as a Prometheus page; None when the page is not 200 or not understood."""
        if not self.ok:
            return None
        try:
            return parse(self.body)
        except PageError:
            return None

    def said(self) -> str:
        """What came back, in a few words for a person."""
        return self.error or f"HTTP {self.status}"


Pages = Mapping[str, Page]


def pages_from(answer: Mapping[str, Mapping[str, Any]]) -> dict[str, Page]:
    """The whole answer of the host call `probe`."""
    return {name: Page.from_answer(entry) for name, entry in answer.items()}


@dataclass(frozen=True, slots=True)
class Readiness:
    """How far a started service is; `detail` says what was seen."""

    state: ReadyState
    detail: str


@dataclass(frozen=True, slots=True)
class FailureLine:
    """A log line by which a failure is known.

    `generic`: only says that something above went wrong. `certain`: no start that shows the line ever comes up; others
    may stand in the log of a good start too, and explain a failure only once the process is gone.
    """

    pattern: str  # a regular expression, searched in a line
    cause: str  # a short class: "unknown_flag", "port_in_use", "kv_too_small", ...
    hint: str = ""
    generic: bool = False
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a start failed: the class of failure, the line that shows it, and what may help."""

    cause: str
    line: str
    hint: str = ""
    certain: bool = False  # whether waiting on is pointless although the process still lives


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the engine can hold, as it says itself; None: not exposed."""

    kv_tokens: float | None = None  # tokens that the context cache holds
    slots: float | None = None  # requests served at the same time
    context_per_request: float | None = None  # tokens


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory that depends on the settings, in bytes; None: cannot be computed for this engine and these facts."""

    host_bytes: int | None = None
    gpu_bytes: int | None = None
    gpu_fraction: float | None = None  # share of each GPU's memory that the engine takes at the start
    how: str = ""  # the formula in words


@runtime_checkable
class Engine(Protocol):
    """One inference server. Values are text as on a command line; numbers are compared parsed (`same`)."""

    name: str
    versions: str  # the range the table was checked against
    settings: Sequence[Setting]
    protocols: Sequence[str]  # how it answers; the first is the default
    precedence: Sequence[Source]  # strongest first
    has_help: bool  # whether the running program can be asked which flags it knows
    underscores: bool  # "_" and "-" are the same in flag names
    failure_lines: Sequence[FailureLine]
    metric_table: MetricTable  # what its metrics page (`metrics` among `probes`) tells, by canonical names

    @property
    def healthy_status(self) -> int:
        """Of the page `health` among `probes`, once the model can answer."""

    def setting(self, name: str) -> Setting:
        """Find a setting by canonical name, engine name, flag, environment variable or file key.

        Raises:
            InputError: unknown; the text lists the nearest names.
        """

    def unfit(self, setting: Setting, text: str) -> str:
        """Why a value cannot be one of the setting's type, and what belongs there; "": it may be."""

    def probes(
        self, endpoint: str, model_name: str | None, auth: Mapping[str, str] | None, *, answer: bool = True
    ) -> list[ProbeRequest]:
        """The requests to send, in this order; with `answer` one real request for a few tokens is among them."""

    def effective(self, pages: Pages, log: Sequence[str] = ()) -> dict[str, str]:
        """What the engine itself reports, by setting name; only what is really exposed."""

    def readiness(self, pages: Pages, expected_model: str | None) -> Readiness:
        """Whether it really answers with the right model, told from the pages of `probes`."""

    def token_counter(self, pages: Pages) -> float | None:
        """Tokens generated since the start; None: not exposed."""

    def deepest_cause(self, log: Sequence[str]) -> Cause | None:
        """The root of a failed start; None when the log shows none."""

    def version(self, pages: Pages, log: Sequence[str] = ()) -> str | None:
        """The engine's version as it reports it."""

    def capacity(self, pages: Pages, log: Sequence[str] = ()) -> Capacity:
        """What it can hold."""

    def running(self, argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
        """Settings as the process was given them, stronger source first; by setting name."""

    def command_without(self, argv: Sequence[str], setting: Setting | None) -> list[str]:
        """The command line without the words that give the setting; None: all of it."""

    def drain_seconds(self, argv: Sequence[str], environ: Mapping[str, str]) -> float:
        """How long it may go on serving after the stop signal, by its settings."""

    def help_argv(self, argv: Sequence[str]) -> list[str]:
        """The running program asked for its help; empty: it cannot be asked."""

    def knows(self, help_text: str, setting: Setting) -> bool | None:
        """Whether the program's own help lists the setting; None: this is no help text of the engine."""

    def value_problem(self, setting: Setting, value: str, help_text: str | None = None) -> str | None:
        """Why the value is impossible for the setting, in a sentence; None: no objection."""

    def same(self, setting: Setting, one: Value, other: Value) -> bool:
        """Whether two spellings mean the same value; absent equals only absent."""

    def took_effect(self, setting: Setting, wanted: str, reported: str) -> bool:
        """Whether what the engine reports is what was asked for (some engines round)."""

    def cross_rules(self, values: Mapping[str, str]) -> list[str]:
        """Rules between settings that the values (by setting name) break, one sentence each."""

    def memory_need(self, values: Mapping[str, str], facts: Mapping[str, Any]) -> MemoryNeed | None:
        """Memory that depends on the settings; `facts` are the model file's own figures. None: cannot be computed."""
