"""The parts of a service file that say how it is started, where its values live and what its engine is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from changectl.core.declared import tensors
from changectl.core.declared.argv import Argv
from changectl.core.declared.fields import AbsolutePath, Line, Port, Unit, is_template, one_key, text_of
from changectl.core.declared.grammar import Fault, Grammar, fault, faults, nearest, not_yet
from changectl.core.declared.service_metrics import GenericMetrics

_LATER_MANAGERS = ("compose", "supervisor")
ANSWER_PROTOCOLS = ("kserve_v2", "openai_chat", "openai_completions", "openai_embeddings")
TENSORS = "kserve_v2"  # the protocol whose requests are tensors and whose models stand in the path
_READY = re.compile(r"(GET|HEAD|POST) (/\S*) ([1-5]\d\d)")


class SystemdManager(Grammar):
    """A systemd service unit."""

    unit: Unit = Field(description="the unit that runs the engine", examples=["vllm.service"])


class PidSource(Grammar):
    """How the process of a `command` manager is found."""

    file: AbsolutePath | None = Field(None, description="file that holds the process id", examples=["/run/chat.pid"])
    port: Port | None = Field(None, description="port that the process listens on", examples=[8080])

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.file is None) == (self.port is None):
            raise fault("the process is found in exactly one way", "write `pid: {file: ...}` or `pid: {port: ...}`")
        return self


class CommandManager(Grammar):
    """The operator's own start and stop commands; no shell runs them."""

    start: Argv = Field(description="starts the engine and returns or stays", examples=["./run-chat start"])
    stop: Argv | None = Field(None, description="stops it; without one the process gets SIGTERM")
    cwd: AbsolutePath | None = Field(None, description="working folder", examples=["/srv/chat"])
    pid: PidSource = Field(description="how the process is found", examples=["{file: /run/chat.pid}"])

    @model_validator(mode="after")
    def _relative_commands_need_a_folder(self) -> Self:
        commands = {"start": self.start, "stop": self.stop or ()}
        relative = [key for key, words in commands.items() if words and words[0].startswith(("./", "../"))]
        if relative and self.cwd is None:
            hint = "write `cwd: /srv/...`, or the command's absolute path"
            raise faults(
                Fault(f"`{commands[key][0]}` is relative to an unknown folder", hint, (key,)) for key in relative
            )
        return self


class Manager(Grammar):
    """What starts and stops the process."""

    systemd: SystemdManager | None = None
    command: CommandManager | None = None

    def as_host_argument(self) -> dict[str, Any]:
        """The manager as the host program's calls take it."""
        if self.systemd is not None:
            return {"systemd": {"unit": self.systemd.unit}}
        if self.command is None:
            return {}
        own = self.command
        pid = {"file": own.pid.file} if own.pid.file is not None else {"port": own.pid.port}
        stop = list(own.stop) if own.stop is not None else None
        return {"command": {"start": list(own.start), "stop": stop, "cwd": own.cwd, "pid": pid}}

    @property
    def name(self) -> str:
        """`systemd` or `command`."""
        return "systemd" if self.systemd is not None else "command"


def _one_manager(value: Any) -> Any:
    if isinstance(value, dict):
        for later in (key for key in value if key in _LATER_MANAGERS):
            raise not_yet(f"manager `{later}`", "systemd, command", "write `manager: {systemd: {unit: vllm.service}}`")
    if not isinstance(value, Manager):
        one_key(value, ("command", "systemd"), "manager", "manager: {systemd: {unit: vllm.service}}")
    return value


class GenericSetting(Grammar):
    """Where one setting of a generic engine stands."""

    flag: Line | None = Field(None, description="command-line flag", examples=["--workers"])
    env: Line | None = Field(None, description="environment variable", examples=["WORKERS"])
    key: Line | None = Field(None, description="key in its configuration file", examples=["workers"])
    type: Literal["int", "float", "bool", "str", "json"] = Field("str", description="how values are compared")
    changes_answers: bool = Field(False, description="whether changing it may change what the model says")

    @model_validator(mode="after")
    def _stands_somewhere(self) -> Self:
        if not (self.flag or self.env or self.key):
            raise fault("the setting stands nowhere", "write at least one of `flag:`, `env:`, `key:`")
        if self.flag and not self.flag.startswith("-"):
            raise faults([Fault(f"`{self.flag}` is not a flag", f"write `--{self.flag}`", ("flag",))])
        return self


def _tensors(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple) or not value:
        raise fault("a list of tensors belongs here", f"write for example `inputs: [{tensors.EXAMPLE}]`")
    typed = [tensors.from_texts(each) for each in value]
    for each in typed:
        if wrong := tensors.problem(each):
            raise fault(wrong, f"write it like {tensors.EXAMPLE}")
    return tuple(typed)


Tensors = Annotated[
    tuple[Mapping[str, Any], ...],
    BeforeValidator(_tensors),
    WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": "object"}}),
]


class GenericAnswer(Grammar):
    """How a generic engine is asked for a real answer."""

    protocol: Line = Field(description="the protocol of its answers", examples=["openai_completions"])
    inputs: Tensors | None = Field(
        None, description="of `kserve_v2`: the tensors of one small request", examples=[f"[{tensors.EXAMPLE}]"]
    )

    @model_validator(mode="after")
    def _known_protocol(self) -> Self:
        if self.protocol not in ANSWER_PROTOCOLS:
            hint = nearest(self.protocol, ANSWER_PROTOCOLS)
            raise faults([Fault(f"unknown protocol `{self.protocol}`", hint, ("protocol",))])
        if self.protocol == TENSORS and self.inputs is None:
            raise fault("nobody knows which tensors its model takes", f"add `inputs: [{tensors.EXAMPLE}]`")
        if self.protocol != TENSORS and self.inputs is not None:
            raise faults([Fault(f"`{self.protocol}` takes no tensors", "leave `inputs` out", ("inputs",))])
        return self


def _ready(value: Any) -> str:
    text = text_of(value)
    if not is_template(text) and not _READY.fullmatch(text):
        raise fault(f"`{text}` is not a readiness request", "write for example `ready: GET /healthz 200`")
    return text


ReadyRequest = Annotated[
    str, BeforeValidator(_ready), WithJsonSchema({"type": "string", "examples": ["GET /healthz 200"]})
]


class GenericEngine(Grammar):
    """An engine that changectl does not know, declared by its service."""

    ready: ReadyRequest = Field(description="the request that tells that it is up", examples=["GET /healthz 200"])
    answer: GenericAnswer = Field(description="how it is asked", examples=["{protocol: openai_completions}"])
    settings: dict[str, GenericSetting] = Field({}, description="its settings by name")
    metrics: GenericMetrics | None = Field(None, description="its own figures")


class EngineChoice(Grammar):
    """The inference server: one by name, or `generic` with its declaration."""

    name: str
    generic: GenericEngine | None = None

    @property
    def spec(self) -> str | dict[str, Any]:
        """The choice as the engines' family takes it: a name, or `{"generic": {...}}`."""
        return self.name if self.generic is None else {"generic": self.generic.model_dump(exclude_none=True)}


def read_engine(value: Any, info: ValidationInfo) -> Any:
    """`vllm`, or `{generic: {...}}`, as an EngineChoice."""
    if isinstance(value, EngineChoice):
        return value
    known: tuple[str, ...] | None = (info.context or {}).get("engines")
    if isinstance(value, dict):
        _, options = one_key(
            value, ("generic",), "engine with settings", "engine: {generic: {ready: GET /healthz 200}}"
        )
        return {"name": "generic", "generic": options}
    name = text_of(value)
    if name == "generic":
        raise fault("a generic engine needs its declaration", "write `engine: {generic: {ready: ..., answer: ...}}`")
    if known is not None and name not in known:
        raise fault(f"unknown engine `{name}`", nearest(name, known))
    return {"name": name}


_ENGINE_SCHEMA: Mapping[str, Any] = {
    "oneOf": [
        {"type": "string", "examples": ["vllm", "llamacpp"]},
        {
            "type": "object",
            "required": ["generic"],
            "additionalProperties": False,
            "properties": {"generic": {"type": "object"}},
        },
    ]
}
Engine = Annotated[EngineChoice, BeforeValidator(read_engine), WithJsonSchema(dict(_ENGINE_SCHEMA))]
ManagerField = Annotated[Manager, BeforeValidator(_one_manager)]
